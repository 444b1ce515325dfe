// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/load_settings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/contract/names.h"
#include "common/contract/yaml_tree.h"

namespace sightline::contract {
namespace {

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

// The part of a YAML path before the dot, and the one after it; no dot: all is the second.
std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

bool is_repeatable(const Setting& row) {
  return row.shape == SettingShape::List || row.shape == SettingShape::Records;
}

// One value that a source gives to a row.
struct Given {
  Setting* row = nullptr;
  SettingItem item;
  std::string origin;
};

Result<Done> apply(const std::vector<Given>& values) {
  std::set<const Setting*> begun;
  for (const Given& given : values) {
    Setting& row = *given.row;
    if (begun.insert(&row).second) row.begin_source();
    const Result<Done> added = row.add(given.item);
    if (!added.ok()) {
      return invalid(row.text.path + " (" + given.origin + "): " + added.error().message);
    }
    row.origin = given.origin;
  }
  return Done{};
}

// --- flags ---

struct Flags {
  std::vector<Given> values;
  std::optional<std::string> config_file;
  LoadedSettings loaded;
};

class FlagReader {
 public:
  FlagReader(SettingTable& table, const std::vector<std::string>& arguments)
      : table_(table), arguments_(arguments) {}

  Result<Flags> read() {
    while (next_ < arguments_.size()) SL_TRY(read_one(arguments_[next_++]));
    return std::move(flags_);
  }

 private:
  Result<Done> read_one(const std::string& argument) {
    if (argument == "-h" || argument == "--help") {
      flags_.loaded.help = true;
      return Done{};
    }
    if (!argument.starts_with("--")) {
      return invalid("unexpected argument '" + argument + "': settings are given as --flag value");
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    if (name == "print-config" && !value) {
      flags_.loaded.print_config = true;
      return Done{};
    }
    if (name == "config") {
      flags_.config_file = SL_TRY(value_of(name, "FILE", value));
      return Done{};
    }
    return read_setting(name, value);
  }

  Result<Done> read_setting(const std::string& name, const std::optional<std::string>& value) {
    std::vector<std::string> known = {"help", "config", "print-config"};
    for (Setting& row : table_.rows()) {
      known.push_back(row.text.flag);
      if (row.text.flag != name) continue;
      std::string text = "true";
      if (row.shape != SettingShape::Switch || value) {
        text = SL_TRY(value_of(name, row.text.placeholder, value));
      }
      flags_.values.push_back({&row, {std::move(text), {}}, "flag --" + name});
      return Done{};
    }
    return invalid("unknown flag --" + name + suggestion(name, known) +
                   "; --help lists all of them");
  }

  Result<std::string> value_of(const std::string& name, const std::string& placeholder,
                               const std::optional<std::string>& value) {
    if (value) return *value;
    if (next_ >= arguments_.size() || arguments_[next_].starts_with("--")) {
      return invalid("--" + name + " needs a value: --" + name + " " + placeholder);
    }
    return arguments_[next_++];
  }

  SettingTable& table_;
  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  Flags flags_;
};

// --- environment ---

std::vector<Given> environment_values(SettingTable& table,
                                      const std::map<std::string, std::string>& environment) {
  std::vector<Given> values;
  for (Setting& row : table.rows()) {
    const std::string name = environment_name(row);
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    const std::string& text = found->second;
    if (!row.is_textual && text.starts_with("tcp://")) continue;
    if (!is_repeatable(row)) {
      values.push_back({&row, {text, {}}, "env " + name});
      continue;
    }
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(';', begin), text.size());
      if (end > begin) {
        values.push_back({&row, {text.substr(begin, end - begin), {}}, "env " + name});
      }
      begin = end + 1;
    }
  }
  return values;
}

// --- YAML ---

class YamlReader {
 public:
  YamlReader(SettingTable& table, std::string file_name)
      : table_(table), file_name_(std::move(file_name)) {}

  Result<std::vector<Given>> read(const YamlNode& root) {
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
    return invalid(origin(node) + ": " + message);
  }

  Setting* find(const std::string& section, const std::string& key) {
    for (Setting& row : table_.rows()) {
      if (split_path(row.text.path) == std::pair(section, key)) return &row;
    }
    return nullptr;
  }

  // Keys below a section, or all sections and top-level keys.
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
    if (!is_repeatable(row)) return read_value(row, node);
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
    Given given{&row, {}, origin(node)};
    for (const YamlNode& field : node.children) {
      if (field.kind != YamlKind::Scalar || is_null_word(field)) {
        return at(field, row.text.path + ": '" + field.key + "' needs one value");
      }
      given.item.fields.push_back({field.key, field.text});
    }
    if (given.item.fields.empty()) return at(node, row.text.path + ": an empty entry");
    values_.push_back(std::move(given));
    return Done{};
  }

  static bool is_null_word(const YamlNode& node) {
    return !node.is_quoted && (node.text == "~" || node.text == "null");
  }

  SettingTable& table_;
  std::string file_name_;
  std::vector<Given> values_;
};

}  // namespace

Result<LoadedSettings> load_settings(SettingTable& table, const SettingSources& sources) {
  Flags flags = SL_TRY(FlagReader(table, sources.arguments).read());
  LoadedSettings loaded = flags.loaded;
  if (loaded.help) return loaded;
  const auto from_environment =
      sources.environment.find(std::string(kEnvironmentPrefix) + "CONFIG");
  if (flags.config_file) {
    loaded.config_file = *flags.config_file;
  } else if (from_environment != sources.environment.end()) {
    loaded.config_file = from_environment->second;
  }
  if (!loaded.config_file.empty()) {
    const std::string text = SL_TRY(sources.read_file(loaded.config_file));
    const YamlNode root = SL_TRY(parse_yaml(text, loaded.config_file));
    const auto values = SL_TRY(YamlReader(table, loaded.config_file).read(root));
    SL_TRY(apply(values));
  }
  SL_TRY(apply(environment_values(table, sources.environment)));
  SL_TRY(apply(flags.values));
  return loaded;
}

}  // namespace sightline::contract
