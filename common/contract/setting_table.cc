// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/setting_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>

#include "common/base/number.h"
#include "common/contract/names.h"

namespace sightline::contract {
namespace {

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array<Unit, 4> kTimeUnits = {
    {{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr std::array<Unit, 4> kSizeUnits = {
    {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}};

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kShownBytesMax = 100;
  return "'" + std::string(text.substr(0, kShownBytesMax)) + "'";
}

// Refuses a leading zero: in other formats "010" is eight.
std::optional<std::uint64_t> plain_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return whole_number<std::uint64_t>(text);
}

std::optional<double> real_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> with_unit(std::string_view text, std::span<const Unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = plain_number(text.substr(0, digits));
  const std::string_view name = text.substr(digits);
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [name](const Unit& candidate) { return candidate.name == name; });
  if (!number || unit == units.end()) return std::nullopt;
  std::uint64_t value = 0;
  // A huge number must not wrap around into the allowed range.
  if (__builtin_mul_overflow(*number, unit->factor, &value)) return std::nullopt;
  return value;
}

// The value in the largest unit that divides it, so --print-config shows what people write.
std::string in_units(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    const bool divides = value != 0 && value % unit.factor == 0;
    if (divides || &unit == &units.back()) {
      return std::to_string(value / unit.factor) + std::string(unit.name);
    }
  }
  return {};
}

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : std::string();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The Levenshtein distance, with only one row of its table in memory.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kNameBytesMax = 64;  // limits a search that takes quadratic time
  if (name.size() > kNameBytesMax) return {};
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : candidates) {
    std::size_t distance = edit_distance(name, candidate);
    // "worker-url" means "worker", so a common beginning counts more than the length of the rest.
    const bool begins =
        name.starts_with(candidate) || std::string_view(candidate).starts_with(name);
    if (begins && std::min(name.size(), candidate.size()) >= 3)
      distance = std::min<std::size_t>(distance, 2);
    if (distance < best) {
      best = distance;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? std::string() : " (did you mean '" + *nearest + "'?)";
}

std::string environment_name(const Setting& setting) {
  std::string name(kEnvironmentPrefix);
  for (const char c : setting.text.flag) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

Setting& SettingTable::add_row(SettingText text) {
  Setting& row = rows_.emplace_back();
  row.text = std::move(text);
  row.begin_source = [] {};
  return row;
}

void SettingTable::add_unsigned(SettingText text, Range<std::uint64_t> range,
                                const std::function<std::uint64_t()>& get,
                                const std::function<void(std::uint64_t)>& set) {
  Setting& row = add_row(std::move(text));
  row.range = std::to_string(range.min) + ".." + std::to_string(range.max);
  row.default_text = std::to_string(get());
  row.show = [get] { return std::vector{std::to_string(get())}; };
  row.add = [set, range, shown = row.range](const SettingItem& item) -> Result<Done> {
    const auto value = plain_number(item.text);
    if (!value || *value < range.min || *value > range.max) {
      return invalid(quoted(item.text) + " is not a whole number in " + shown);
    }
    set(*value);
    return Done{};
  };
}

void SettingTable::add_number(SettingText text, double& field, Range<double> range) {
  Setting& row = add_row(std::move(text));
  row.range = shortest(range.min) + ".." + shortest(range.max);
  row.default_text = shortest(field);
  row.show = [&field] { return std::vector{shortest(field)}; };
  row.add = [&field, range, shown = row.range](const SettingItem& item) -> Result<Done> {
    const auto value = real_number(item.text);
    if (!value || *value < range.min || *value > range.max) {
      return invalid(quoted(item.text) + " is not a number in " + shown);
    }
    field = *value;
    return Done{};
  };
}

void SettingTable::add_duration(SettingText text, milliseconds& field, Range<milliseconds> range) {
  const auto show = [](milliseconds value) {
    return in_units(static_cast<std::uint64_t>(value.count()), kTimeUnits);
  };
  Setting& row = add_row(std::move(text));
  row.is_textual = true;
  row.range = show(range.min) + ".." + show(range.max);
  row.default_text = show(field);
  row.show = [&field, show] { return std::vector{show(field)}; };
  row.add = [&field, range, shown = row.range](const SettingItem& item) -> Result<Done> {
    const auto value = with_unit(item.text, kTimeUnits);
    if (!value || *value > static_cast<std::uint64_t>(range.max.count()) ||
        *value < static_cast<std::uint64_t>(range.min.count())) {
      return invalid(quoted(item.text) + " is not a time in " + shown +
                     ". Write it with its unit: 250ms, 5s, 2m, 1h");
    }
    field = milliseconds(*value);
    return Done{};
  };
}

void SettingTable::add_size(SettingText text, std::uint64_t& field, Range<std::uint64_t> range) {
  Setting& row = add_row(std::move(text));
  row.is_textual = true;
  row.range = in_units(range.min, kSizeUnits) + ".." + in_units(range.max, kSizeUnits);
  row.default_text = in_units(field, kSizeUnits);
  row.show = [&field] { return std::vector{in_units(field, kSizeUnits)}; };
  row.add = [&field, range, shown = row.range](const SettingItem& item) -> Result<Done> {
    const auto value = with_unit(item.text, kSizeUnits);
    if (!value || *value < range.min || *value > range.max) {
      return invalid(quoted(item.text) + " is not a size in " + shown +
                     ". Write bytes, or KiB, MiB, GiB: 4096, 20MiB");
    }
    field = *value;
    return Done{};
  };
}

void SettingTable::add_text(SettingText text, std::string& field) {
  Setting& row = add_row(std::move(text));
  row.is_textual = true;
  row.default_text = field;
  row.show = [&field] { return std::vector{field}; };
  row.add = [&field](const SettingItem& item) -> Result<Done> {
    field = item.text;
    return Done{};
  };
}

void SettingTable::add_text_list(SettingText text, std::vector<std::string>& field) {
  Setting& row = add_row(std::move(text));
  row.shape = SettingShape::List;
  row.is_textual = true;
  row.default_text = joined(field);
  row.show = [&field] { return field; };
  // A list of a stronger source replaces the weaker list.
  row.begin_source = [&field] { field.clear(); };
  row.add = [&field](const SettingItem& item) -> Result<Done> {
    if (item.text.empty()) return invalid("the value is empty");
    field.push_back(item.text);
    return Done{};
  };
}

void SettingTable::add_switch(SettingText text, bool& field) {
  const auto show = [](bool value) { return std::string(value ? "true" : "false"); };
  Setting& row = add_row(std::move(text));
  row.shape = SettingShape::Switch;
  row.range = "true, false";
  row.default_text = show(field);
  row.show = [&field, show] { return std::vector{show(field)}; };
  row.add = [&field](const SettingItem& item) -> Result<Done> {
    if (item.text != "true" && item.text != "false") {
      return invalid(quoted(item.text) + " is neither true nor false");
    }
    field = item.text == "true";
    return Done{};
  };
}

void SettingTable::add_named(SettingText text, const std::vector<std::string>& names,
                             const std::function<std::size_t()>& get,
                             const std::function<void(std::size_t)>& set) {
  Setting& row = add_row(std::move(text));
  row.is_textual = true;
  row.range = joined(names);
  row.show = [names, get] { return std::vector{names.at(get())}; };
  row.default_text = row.show()[0];
  row.add = [names, set](const SettingItem& item) -> Result<Done> {
    const auto found = std::find(names.begin(), names.end(), item.text);
    if (found == names.end()) {
      return invalid(quoted(item.text) + suggestion(item.text, names) + " is not one of " +
                     joined(names));
    }
    set(static_cast<std::size_t>(found - names.begin()));
    return Done{};
  };
}

void SettingTable::add_choice(SettingText text, std::string& field,
                              const std::vector<std::string>& choices) {
  auto get = [&field, choices] {
    return static_cast<std::size_t>(std::find(choices.begin(), choices.end(), field) -
                                    choices.begin());
  };
  auto set = [&field, choices](std::size_t i) { field = choices[i]; };
  add_named(std::move(text), choices, get, set);
}

void SettingTable::add_workers(SettingText text, std::vector<WorkerSpec>& field) {
  Setting& row = add_row(std::move(text));
  row.shape = SettingShape::Records;
  row.is_textual = true;
  row.show = [&field] {
    std::vector<std::string> texts;
    for (const WorkerSpec& worker : field) texts.push_back(worker_text(worker));
    return texts;
  };
  // The names that the present source gave.
  auto seen = std::make_shared<std::vector<std::string>>();
  row.begin_source = [seen] { seen->clear(); };
  row.add = [&field, seen](const SettingItem& item) -> Result<Done> {
    WorkerSpec worker =
        SL_TRY(item.fields.empty() ? parse_worker(item.text) : worker_from_fields(item.fields));
    if (std::find(seen->begin(), seen->end(), worker.name) != seen->end()) {
      return invalid("the worker name " + quoted(worker.name) + " is given twice");
    }
    seen->push_back(worker.name);
    // A name from a weaker source: the stronger worker replaces it.
    const auto same = std::find_if(field.begin(), field.end(), [&worker](const auto& other) {
      return other.name == worker.name;
    });
    if (same == field.end()) {
      field.push_back(std::move(worker));
    } else {
      *same = std::move(worker);
    }
    return Done{};
  };
}

}  // namespace sightline::contract
