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

// The kind of a YAML node.
enum class YamlKind : std::uint8_t { Null, Scalar, Sequence, Map };

// One node of a YAML text. A scalar keeps its text as written. The reader decides what it means:
// "010" and yes must not become 8 and true.
struct YamlNode {
  YamlKind kind = YamlKind::Null;
  // In a map.
  std::string key;
  // Of a scalar.
  std::string text;
  // Of a scalar.
  bool is_quoted = false;
  // From 1. In a map, the line of the key.
  std::uint32_t line = 0;
  std::vector<YamlNode> children;
};

// Reads one YAML document. An empty one is Null. Refuses syntax errors, repeated keys, keys that
// are not scalars, several documents, more than 10,000 nodes and more than 32 levels. Errors:
// InvalidArgument, with a message that starts with "<file_name>:<line>: ".
Result<YamlNode> parse_yaml(const std::string& text, std::string_view file_name);

// The values that a YAML text gives to the rows of the table, in the order of the text and
// unchecked. Errors: InvalidArgument for:
// - the errors of parse_yaml()
// - unknown sections and keys, with the nearest known name
// - a list in place of a value, or a value in place of a list
Result<std::vector<GivenValue>> read_yaml_values(SettingTable& table, const std::string& text,
                                                 const std::string& file_name);

}  // namespace sightline::contract
