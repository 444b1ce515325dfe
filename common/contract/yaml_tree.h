// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace sightline::contract {

enum class YamlKind : std::uint8_t { Null, Scalar, Sequence, Map };

// One node of a YAML text. Scalars keep their text as written: what it means is the reader's
// business, so that "010" and yes are never turned into 8 and true.
struct YamlNode {
  YamlKind kind = YamlKind::Null;
  std::string key;         // within a map
  std::string text;        // of a scalar
  bool is_quoted = false;  // of a scalar
  std::uint32_t line = 0;  // from 1; of a map's member, the line of its key
  std::vector<YamlNode> children;
};

// Reads one YAML document; an empty one is Null. Refused: syntax errors, repeated keys, keys that
// are not scalars, several documents, more than 10,000 nodes or 32 levels.
// Errors: InvalidArgument, message starting with "<file_name>:<line>: ".
Result<YamlNode> parse_yaml(const std::string& text, std::string_view file_name);

}  // namespace sightline::contract
