// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/contract/worker_spec.h"

// The settings of a program as a table. Flags, environment, YAML, --help, --print-config and the
// documentation are all derived from it.
namespace sightline::contract {

// The part of a setting that people read.
struct SettingText {
  // YAML path, for example "server.port".
  std::string path;
  // Without dashes, for example "port". Gives the environment name too.
  std::string flag;
  // Of the value in --help: "N", "DIR".
  std::string placeholder;
  // One or two sentences: meaning and unit.
  std::string help;
};

// One value from a source. A record (a worker) comes as fields from YAML, and as text from flags
// and environment.
struct SettingItem {
  std::string text;
  std::vector<NamedField> fields;
};

// How many values a setting takes.
enum class SettingShape {
  // One value. The last one of a source counts.
  Scalar,
  // A flag without a value.
  Switch,
  // Repeatable. A stronger source replaces the whole list.
  List,
  // Repeatable. The sources add up by the names of the records.
  Records,
};

// One row of the table. Its functions are bound to the field of the settings struct.
struct Setting {
  SettingText text;
  SettingShape shape = SettingShape::Scalar;
  // Accepts quoted YAML scalars.
  bool is_textual = false;
  // For people: "1..65535", "kv, random".
  std::string range;
  std::string default_text;
  // For example "flag --port", "env SIGHTLINE_PORT", "router.yaml:3".
  std::string origin = "default";

  // Called when a new source starts to give values.
  std::function<void()> begin_source;
  // Adds one value. Errors: InvalidArgument that states the allowed values.
  std::function<Result<Done>(const SettingItem&)> add;
  // The present values. One for a scalar.
  std::function<std::vector<std::string>()> show;

  [[nodiscard]] bool is_repeatable() const {
    return shape == SettingShape::List || shape == SettingShape::Records;
  }
};

// One value that a source gives to a row of a table, which must outlive it.
struct GivenValue {
  Setting* row = nullptr;
  SettingItem item;
  std::string origin;
};

// "SIGHTLINE_" and the flag in upper case, with '_' for '-'.
std::string environment_name(const Setting& setting);

// " (did you mean 'port'?)" with the candidate most similar to `name`. Empty if no candidate is
// similar.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

// Inclusive bounds. Documentation and errors show both.
template <class Number>
struct Range {
  Number min{};
  Number max{};
};

// The rows of a program, in the order of the documentation. Each add_… function adds one row, bound
// to `field`.
// Thread safety: one thread at a time, at start.
class SettingTable {
 public:
  // Fields must outlive the table. Their values at this call are the defaults.
  template <class Integer>
  void add_integer(SettingText text, Integer& field, Range<Integer> range) {
    add_unsigned(
        std::move(text), {range.min, range.max}, [&field] { return field; },
        [&field](std::uint64_t value) { field = static_cast<Integer>(value); });
  }
  void add_number(SettingText text, double& field, Range<double> range);
  // Written with a unit: 250ms, 5s, 2m, 1h.
  void add_duration(SettingText text, std::chrono::milliseconds& field,
                    Range<std::chrono::milliseconds> range);
  // Written in bytes or with a unit: 4096, 64KiB, 20MiB, 1GiB.
  void add_size(SettingText text, std::uint64_t& field, Range<std::uint64_t> range);
  void add_text(SettingText text, std::string& field);
  void add_text_list(SettingText text, std::vector<std::string>& field);
  void add_switch(SettingText text, bool& field);
  void add_choice(SettingText text, std::string& field, const std::vector<std::string>& choices);
  template <class Enum>
  void add_enum(SettingText text, Enum& field, std::vector<std::pair<std::string, Enum>> choices);
  void add_workers(SettingText text, std::vector<WorkerSpec>& field);

  [[nodiscard]] std::span<Setting> rows() { return rows_; }
  [[nodiscard]] std::span<const Setting> rows() const { return rows_; }

 private:
  void add_unsigned(SettingText text, Range<std::uint64_t> range,
                    const std::function<std::uint64_t()>& get,
                    const std::function<void(std::uint64_t)>& set);
  void add_named(SettingText text, const std::vector<std::string>& names,
                 const std::function<std::size_t()>& get,
                 const std::function<void(std::size_t)>& set);
  Setting& add_row(SettingText text);

  std::vector<Setting> rows_;
};

template <class Enum>
void SettingTable::add_enum(SettingText text, Enum& field,
                            std::vector<std::pair<std::string, Enum>> choices) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  auto get = [&field, choices] {
    std::size_t i = 0;
    while (i < choices.size() && choices[i].second != field) ++i;
    return i;
  };
  auto set = [&field, choices](std::size_t i) { field = choices[i].second; };
  add_named(std::move(text), names, get, set);
}

}  // namespace sightline::contract
