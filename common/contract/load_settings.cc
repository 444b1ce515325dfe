// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/load_settings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/json.h"
#include "common/contract/names.h"
#include "common/contract/yaml_values.h"

namespace sightline::contract {
namespace {

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

// Adds the values to their rows. An invalid record goes to left_out. Without left_out (null), or
// for any other value, it is an error.
Result<Done> take_values(const std::vector<GivenValue>& values,
                         std::vector<std::string>* left_out) {
  std::set<const Setting*> begun;
  for (const GivenValue& given : values) {
    Setting& row = *given.row;
    // Once for each source and row.
    if (begun.insert(&row).second) row.begin_source();
    const Result<Done> added = row.add(given.item);
    if (!added.ok()) {
      const std::string problem =
          row.text.path + " (" + given.origin + "): " + added.error().message;
      const bool is_record = row.shape == SettingShape::Records && left_out != nullptr;
      if (!is_record) return invalid(problem);
      left_out->push_back(problem);
      continue;
    }
    row.origin = given.origin;
  }
  return Done{};
}

// Flags.

struct Flags {
  std::vector<GivenValue> values;
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
    const std::string name = argument.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    if (name == "--print-config" && !value) {
      flags_.loaded.print_config = true;
      return Done{};
    }
    if (name == "--config") {
      flags_.config_file = SL_TRY(value_of(name, "FILE", value));
      return Done{};
    }
    return read_setting(name, value);
  }

  Result<Done> read_setting(const std::string& name, const std::optional<std::string>& value) {
    std::vector<std::string> known = {"--help", "--config", "--print-config"};
    for (Setting& row : table_.rows()) {
      known.push_back("--" + row.text.flag);
      if ("--" + row.text.flag != name) continue;
      std::string text = "true";
      if (row.shape != SettingShape::Switch || value) {
        text = SL_TRY(value_of(name, row.text.placeholder, value));
      }
      flags_.values.push_back({&row, {std::move(text), {}}, "flag " + name});
      return Done{};
    }
    return invalid("unknown flag " + name + suggestion(name, known) + ". --help lists all flags");
  }

  Result<std::string> value_of(const std::string& name, const std::string& placeholder,
                               const std::optional<std::string>& value) {
    if (value) return *value;
    // A word with `--` is the next flag, so the value is missing.
    if (next_ >= arguments_.size() || arguments_[next_].starts_with("--")) {
      return invalid(name + " needs a value: " + name + " " + placeholder);
    }
    return arguments_[next_++];
  }

  SettingTable& table_;
  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  Flags flags_;
};

// Environment.

std::vector<GivenValue> environment_values(SettingTable& table,
                                           const std::map<std::string, std::string>& environment) {
  std::vector<GivenValue> values;
  for (Setting& row : table.rows()) {
    const std::string name = environment_name(row);
    const auto found = environment.find(name);
    // An empty variable is the same as a missing one.
    if (found == environment.end() || found->second.empty()) continue;
    const std::string& text = found->second;
    // Kubernetes sets SIGHTLINE_PORT=tcp://… beside a Service named `sightline`.
    if (!row.is_textual && text.starts_with("tcp://")) continue;
    if (!row.is_repeatable()) {
      values.push_back({&row, {text, {}}, "env " + name});
      continue;
    }
    // Semicolons stand between the entries of a list.
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

// Texts for people.

constexpr std::size_t kHelpColumns = 100;
constexpr std::size_t kHelpIndent = 6;

std::string section_of(const Setting& row) {
  const std::size_t dot = row.text.path.find('.');
  return row.text.path.substr(0, dot == std::string::npos ? 0 : dot);
}

std::string key_of(const Setting& row) { return row.text.path.substr(row.text.path.find('.') + 1); }

// Each JSON string is also a YAML string.
std::string yaml_value(const Setting& row, const std::string& text) {
  return row.is_textual ? json::to_quoted(text) : text;
}

std::string yaml_record(const std::string& text) {
  std::string record;
  const auto fields = split_worker_fields(text);
  SL_CHECK(fields.ok());
  for (const NamedField& field : *fields) {
    record += (record.empty() ? "{" : ", ") + field.name + ": " + json::to_quoted(field.value);
  }
  return record + "}";
}

void append_wrapped(std::string& out, std::string_view text) {
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const bool fits = column != 0 && column + 1 + space <= kHelpColumns;
    if (fits) {
      out += ' ';
      column += 1 + space;
    } else {
      out += (column == 0 ? "" : "\n") + std::string(kHelpIndent, ' ');
      column = kHelpIndent + space;
    }
    out += text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  out += '\n';
}

void append_help(std::string& out, const Setting& row) {
  out += "  --" + row.text.flag;
  if (row.shape != SettingShape::Switch) out += ' ' + row.text.placeholder;
  out += '\n';
  append_wrapped(out, row.text.help);
  std::string facts;
  if (!row.default_text.empty()) facts += "default " + row.default_text + "; ";
  if (!row.range.empty() && row.shape != SettingShape::Switch) facts += row.range + "; ";
  append_wrapped(out, "[" + facts + environment_name(row) + "; " + row.text.path + "]");
}

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
  // From the weakest source to the strongest.
  if (!loaded.config_file.empty()) {
    const std::string text = SL_TRY(sources.read_file(loaded.config_file));
    const auto values = SL_TRY(read_yaml_values(table, text, loaded.config_file));
    SL_TRY(take_values(values, &loaded.left_out));
  }
  SL_TRY(take_values(environment_values(table, sources.environment), nullptr));
  SL_TRY(take_values(flags.values, nullptr));
  return loaded;
}

std::string help_text(const SettingTable& table) {
  std::string out =
      "  --config FILE\n"
      "      YAML file with settings by the dotted names below. [SIGHTLINE_CONFIG]\n"
      "  --print-config\n"
      "      Print all settings as YAML, each with its source, and exit.\n"
      "  --help\n"
      "      Show this text.\n";
  std::string section = "-";
  for (const Setting& row : table.rows()) {
    if (section_of(row) != section) {
      section = section_of(row);
      out += '\n' + (section.empty() ? key_of(row) : section) + ":\n";
    }
    append_help(out, row);
  }
  return out + "\nStrongest first: flags, environment, YAML file, defaults.\n";
}

std::string print_settings(const SettingTable& table) {
  std::string out;
  std::string section;
  for (const Setting& row : table.rows()) {
    if (section_of(row) != section) {
      section = section_of(row);
      if (!section.empty()) out += section + ":\n";
    }
    const std::string indent = section.empty() ? "" : "  ";
    const std::vector<std::string> values = row.show();
    const std::string comment = "  # " + row.origin + "\n";
    out += indent + key_of(row) + ":";
    if (row.shape == SettingShape::Scalar || row.shape == SettingShape::Switch) {
      out += " " + yaml_value(row, values.at(0)) + comment;
      continue;
    }
    out += (values.empty() ? " []" : "") + comment;
    for (const std::string& value : values) {
      const bool is_record = row.shape == SettingShape::Records;
      out += indent + "  - " + (is_record ? yaml_record(value) : yaml_value(row, value)) + "\n";
    }
  }
  return out;
}

}  // namespace sightline::contract
