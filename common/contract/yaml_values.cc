// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/yaml_values.h"

#include <cstddef>
#include <utility>

#include <yaml-cpp/yaml.h>

namespace sightline::contract {
namespace {

constexpr std::size_t kNodesMax = 10'000;
constexpr std::size_t kDepthMax = 32;
// Twenty times the text that a thousand workers need.
constexpr std::size_t kTextBytesMax = 4 << 20;

std::uint32_t line_of(const YAML::Mark& mark) {
  // yaml-cpp gives line -1 to a node without a place.
  return mark.line < 0 ? 1 : static_cast<std::uint32_t>(mark.line) + 1;
}

class TreeReader {
 public:
  explicit TreeReader(std::string_view file_name) : file_name_(file_name) {}

  Error error(std::uint32_t line, const std::string& message) const {
    return client_error(ErrorCode::InvalidArgument,
                        std::string(file_name_) + ":" + std::to_string(line) + ": " + message);
  }

  // Aliases are shared nodes, so only a count of the visited nodes limits how far they expand.
  Result<YamlNode> read(const YAML::Node& source, std::size_t depth) {
    YamlNode node;
    node.line = line_of(source.Mark());
    if (++nodes_ > kNodesMax)
      return error(node.line, "more than " + std::to_string(kNodesMax) + " YAML nodes");
    if (depth > kDepthMax)
      return error(node.line, "nested more than " + std::to_string(kDepthMax) + " levels deep");
    if (source.IsScalar()) {
      node.kind = YamlKind::Scalar;
      node.text = source.Scalar();
      // yaml-cpp gives the tag `!` to a quoted scalar.
      node.is_quoted = source.Tag() == "!";
    } else if (source.IsSequence()) {
      node.kind = YamlKind::Sequence;
      for (const auto& item : source) node.children.push_back(SL_TRY(read(item, depth + 1)));
    } else if (source.IsMap()) {
      node.kind = YamlKind::Map;
      SL_TRY(read_members(source, depth, node));
    }
    return node;
  }

 private:
  Result<Done> read_members(const YAML::Node& source, std::size_t depth, YamlNode& node) {
    for (const auto& entry : source) {
      const std::uint32_t line = line_of(entry.first.Mark());
      if (!entry.first.IsScalar()) return error(line, "a key must be a plain word");
      // yaml-cpp accepts a key twice.
      for (const YamlNode& other : node.children) {
        if (other.key == entry.first.Scalar()) {
          return error(line, "'" + other.key + "' is given twice, first in line " +
                                 std::to_string(other.line) + ": remove one");
        }
      }
      YamlNode member = SL_TRY(read(entry.second, depth + 1));
      member.key = entry.first.Scalar();
      member.line = line;
      node.children.push_back(std::move(member));
    }
    return Done{};
  }

  std::string_view file_name_;
  std::size_t nodes_ = 0;
};

// Splits a YAML path at its dot. Without a dot, the whole path is the second part.
std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

class YamlReader {
 public:
  YamlReader(SettingTable& table, std::string file_name)
      : table_(table), file_name_(std::move(file_name)) {}

  Result<std::vector<GivenValue>> read(const YamlNode& root) {
    if (root.kind == YamlKind::Null) return std::move(values_);
    if (root.kind != YamlKind::Map) return at(root, "expected sections such as 'server:'");
    for (const YamlNode& member : root.children) {
      if (Setting* row = find("", member.key)) {
        SL_TRY(read_row(*row, member));
      } else {
        SL_TRY(read_section(member));
      }
    }
    return std::move(values_);
  }

 private:
  std::string origin(const YamlNode& node) const {
    return file_name_ + ":" + std::to_string(node.line);
  }
  Error at(const YamlNode& node, const std::string& message) const {
    return client_error(ErrorCode::InvalidArgument, origin(node) + ": " + message);
  }

  Setting* find(const std::string& section, const std::string& key) {
    for (Setting& row : table_.rows()) {
      if (split_path(row.text.path) == std::pair(section, key)) return &row;
    }
    return nullptr;
  }

  // The keys of a section. For an empty section: all sections and top-level keys.
  std::vector<std::string> known_keys(const std::string& section) const {
    std::vector<std::string> keys;
    for (const Setting& row : std::as_const(table_).rows()) {
      const auto [row_section, key] = split_path(row.text.path);
      if (row_section == section) {
        keys.push_back(key);
      } else if (section.empty() && (keys.empty() || keys.back() != row_section)) {
        keys.push_back(row_section);
      }
    }
    return keys;
  }

  Result<Done> read_section(const YamlNode& section) {
    const std::vector<std::string> keys =
        section.key.empty() ? std::vector<std::string>{} : known_keys(section.key);
    if (keys.empty()) {
      return at(section,
                "unknown setting '" + section.key + "'" + suggestion(section.key, known_keys("")));
    }
    if (section.kind == YamlKind::Null) return Done{};
    if (section.kind != YamlKind::Map) {
      return at(section, "'" + section.key + "' is a section: write its settings below it");
    }
    for (const YamlNode& member : section.children) {
      Setting* row = find(section.key, member.key);
      if (row == nullptr) {
        return at(member, "unknown setting '" + section.key + "." + member.key + "'" +
                              suggestion(member.key, keys));
      }
      SL_TRY(read_row(*row, member));
    }
    return Done{};
  }

  Result<Done> read_row(Setting& row, const YamlNode& node) {
    if (!row.is_repeatable()) return read_value(row, node);
    if (node.kind == YamlKind::Null) return Done{};
    if (node.kind != YamlKind::Sequence) {
      return at(node, row.text.path + " is a list: start each entry with '- '");
    }
    for (const YamlNode& item : node.children) {
      if (row.shape == SettingShape::Records && item.kind == YamlKind::Map) {
        SL_TRY(read_record(row, item));
      } else {
        SL_TRY(read_value(row, item));
      }
    }
    return Done{};
  }

  Result<Done> read_value(Setting& row, const YamlNode& node) {
    if (node.kind != YamlKind::Scalar || is_null_word(node)) {
      return at(node, row.text.path + " needs one value");
    }
    if (node.is_quoted && !row.is_textual) {
      return at(node, row.text.path + " is not a text: write it without quotes");
    }
    values_.push_back({&row, {node.text, {}}, origin(node)});
    return Done{};
  }

  Result<Done> read_record(Setting& row, const YamlNode& node) {
    GivenValue given{&row, {}, origin(node)};
    for (const YamlNode& field : node.children) {
      if (field.kind != YamlKind::Scalar || is_null_word(field)) {
        return at(field, row.text.path + ": '" + field.key + "' needs one value");
      }
      given.item.fields.push_back({field.key, field.text});
    }
    if (given.item.fields.empty()) return at(node, row.text.path + ": an entry is empty");
    values_.push_back(std::move(given));
    return Done{};
  }

  static bool is_null_word(const YamlNode& node) {
    return !node.is_quoted && (node.text == "~" || node.text == "null");
  }

  SettingTable& table_;
  std::string file_name_;
  std::vector<GivenValue> values_;
};

}  // namespace

Result<YamlNode> parse_yaml(const std::string& text, std::string_view file_name) {
  TreeReader reader(file_name);
  if (text.size() > kTextBytesMax) return reader.error(1, "the file is larger than 4 MiB");
  try {
    // Load() would ignore a second document.
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty()) return YamlNode{};
    if (documents.size() > 1) {
      return reader.error(line_of(documents[1].Mark()), "a second YAML document starts here");
    }
    return reader.read(documents[0], 0);
  } catch (const YAML::Exception& failure) {
    return reader.error(line_of(failure.mark), failure.msg);
  }
}

Result<std::vector<GivenValue>> read_yaml_values(SettingTable& table, const std::string& text,
                                                 const std::string& file_name) {
  const YamlNode root = SL_TRY(parse_yaml(text, file_name));
  return YamlReader(table, file_name).read(root);
}

}  // namespace sightline::contract
