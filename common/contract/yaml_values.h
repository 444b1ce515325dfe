// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/setting_table.h"

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

// The values that a YAML text gives to the rows of the table, in the order of the text, without
// checking them. Errors: InvalidArgument: those of parse_yaml, unknown sections and keys (with
// the nearest known name), a list where a value belongs and the other way round.
Result<std::vector<GivenValue>> read_yaml_values(SettingTable& table, const std::string& text,
                                                 const std::string& file_name);

}  // namespace sightline::contract
