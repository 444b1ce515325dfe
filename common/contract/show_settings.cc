// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/json.h"
#include "common/contract/load_settings.h"

namespace sightline::contract {
namespace {

constexpr std::size_t kHelpColumns = 100;
constexpr std::size_t kHelpIndent = 6;

std::string section_of(const Setting& row) {
  const std::size_t dot = row.text.path.find('.');
  return row.text.path.substr(0, dot == std::string::npos ? 0 : dot);
}

std::string key_of(const Setting& row) { return row.text.path.substr(row.text.path.find('.') + 1); }

// JSON strings are YAML strings, whatever they contain.
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

std::string help_text(const SettingTable& table) {
  std::string out =
      "  --config FILE\n"
      "      YAML file with settings by the dotted names below. [SIGHTLINE_CONFIG]\n"
      "  --print-config\n"
      "      Show all settings and where each comes from, as YAML, and end.\n"
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
