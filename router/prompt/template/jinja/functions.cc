// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "router/prompt/template/jinja/evaluator.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"

// The functions that every template may call, and the objects that only templates have.
namespace sightline::jinja {
namespace {

using python::Arguments;

constexpr std::array<std::string_view, 7> kDays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths{"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

Result<std::int64_t> integer_of(const Value& value) {
  if (const auto integer = value.as_integer()) return *integer;
  return python::type_error(
      value, "'" + std::string(value.type_name()) + "' object cannot be interpreted as an integer");
}

// Returns the number of items of range(start, stop, step), without overflow.
std::uint64_t range_size(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  if (is_empty) return 0;
  const auto low = static_cast<std::uint64_t>(std::min(start, stop));
  const auto high = static_cast<std::uint64_t>(std::max(start, stop));
  // Unsigned arithmetic also negates the smallest integer.
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  return (high - low - 1) / stride + 1;
}

Result<Value> run_range(const Arguments& arguments, python::Meter& meter) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty()) {
    return invalid("range expected 1 to 3 arguments, got " + std::to_string(given.size()));
  }
  const std::int64_t first = SL_TRY(integer_of(given[0]));
  const std::int64_t stop = given.size() > 1 ? SL_TRY(integer_of(given[1])) : first;
  const std::int64_t start = given.size() > 1 ? first : 0;
  const std::int64_t step = given.size() > 2 ? SL_TRY(integer_of(given[2])) : 1;
  if (step == 0) return invalid("range() arg 3 must not be zero");
  const std::uint64_t size = range_size(start, stop, step);
  // Checked before the items are created.
  if (size > static_cast<std::uint64_t>(kRangeItemsMax)) {
    return invalid("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" +
                   std::to_string(kRangeItemsMax) + ").");
  }
  std::vector<Value> items;
  if (!meter.spend(size)) return Value();
  items.reserve(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    // All items are between start and stop, so this does not overflow.
    items.push_back(Value::integer(start + static_cast<std::int64_t>(i) * step));
  }
  // A tuple shares most properties with a range: it has an index and a length, but no "+" with
  // lists.
  return Value::list(std::move(items), python::SequenceKind::Tuple);
}

// Returns the entries of dict(…) and namespace(…): those of a mapping, then the named arguments.
Result<std::vector<Dict::Entry>> entries_of(const Arguments& arguments) {
  std::vector<Dict::Entry> entries;
  if (arguments.positional.size() > 1) {
    return invalid("dict expected at most 1 argument, got " +
                   std::to_string(arguments.positional.size()));
  }
  if (!arguments.positional.empty()) {
    const Dict* dict = arguments.positional.front().as_dict();
    if (dict == nullptr) {
      return client_error(ErrorCode::Unsupported, "dict: only a mapping can be copied");
    }
    entries.assign(dict->entries().begin(), dict->entries().end());
  }
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(Value::text(std::string(name)), value);
  }
  return entries;
}

std::string padded(std::int64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width - std::min(width, digits.size()), '0') + digits;
}

std::string two_digits(std::int64_t number) { return padded(number, 2); }

// The fields of strftime for one time.
class Calendar {
 public:
  explicit Calendar(WallTime time)
      : day_(std::chrono::floor<std::chrono::days>(time)),
        date_(day_),
        clock_(std::chrono::floor<std::chrono::microseconds>(time - day_)) {}

  // Returns nothing for an unknown letter.
  [[nodiscard]] std::optional<std::string> field(char letter) const {
    switch (letter) {
      case 'F':
        return year() + "-" + two_digits(month()) + "-" + two_digits(day());
      case 'D':
      case 'x':
        return two_digits(month()) + "/" + two_digits(day()) + "/" + year().substr(2);
      case 'T':
      case 'X':
        return *time_field('H') + ":" + *time_field('M') + ":" + *time_field('S');
      // The time is in UTC without a zone, for which Python prints nothing.
      case 'z':
      case 'Z':
        return "";
      case '%':
        return "%";
      default: {
        auto text = date_field(letter);
        return text ? text : time_field(letter);
      }
    }
  }

 private:
  [[nodiscard]] unsigned month() const { return static_cast<unsigned>(date_.month()); }
  [[nodiscard]] unsigned day() const { return static_cast<unsigned>(date_.day()); }
  [[nodiscard]] unsigned weekday() const { return std::chrono::weekday(day_).c_encoding(); }
  [[nodiscard]] std::string year() const { return padded(static_cast<int>(date_.year()), 4); }
  [[nodiscard]] std::int64_t day_of_year() const {
    const auto first = std::chrono::sys_days(date_.year() / std::chrono::January / 1);
    return (day_ - first).count() + 1;
  }

  [[nodiscard]] std::optional<std::string> date_field(char letter) const {
    switch (letter) {
      case 'a':
        return std::string(kDays[weekday()].substr(0, 3));
      case 'A':
        return std::string(kDays[weekday()]);
      case 'b':
      case 'h':
        return std::string(kMonths[month() - 1].substr(0, 3));
      case 'B':
        return std::string(kMonths[month() - 1]);
      case 'd':
        return two_digits(day());
      case 'e':
        return (day() < 10 ? " " : "") + std::to_string(day());
      case 'j':
        return padded(day_of_year(), 3);
      case 'm':
        return two_digits(month());
      case 'u':
        return std::to_string(weekday() == 0 ? 7 : weekday());
      case 'w':
        return std::to_string(weekday());
      case 'y':
        return year().substr(2);
      case 'Y':
        return year();
      default:
        return std::nullopt;
    }
  }

  [[nodiscard]] std::optional<std::string> time_field(char letter) const {
    const auto hour = clock_.hours().count();
    switch (letter) {
      case 'f':
        return padded(clock_.subseconds().count(), 6);
      case 'H':
        return two_digits(hour);
      case 'I':
        return two_digits(hour % 12 == 0 ? 12 : hour % 12);
      case 'M':
        return two_digits(clock_.minutes().count());
      case 'p':
        return hour < 12 ? "AM" : "PM";
      case 'S':
        return two_digits(clock_.seconds().count());
      default:
        return std::nullopt;
    }
  }

  std::chrono::sys_days day_;
  std::chrono::year_month_day date_;
  std::chrono::hh_mm_ss<std::chrono::microseconds> clock_;
};

}  // namespace

std::optional<FunctionName> find_function(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, FunctionName>, 5> kFunctions{{
      {"dict", FunctionName::Dict},
      {"namespace", FunctionName::Namespace},
      {"raise_exception", FunctionName::RaiseException},
      {"range", FunctionName::Range},
      {"strftime_now", FunctionName::StrftimeNow},
  }};
  const auto* found = std::find_if(kFunctions.begin(), kFunctions.end(),
                                   [&](const auto& entry) { return entry.first == name; });
  if (found == kFunctions.end()) return std::nullopt;
  return found->second;
}

Result<Value> Evaluator::call_function(const Function& function, const Arguments& arguments) {
  switch (function.name()) {
    case FunctionName::Range:
      return run_range(arguments, meter_);
    case FunctionName::Dict: {
      std::vector<Dict::Entry> entries = SL_TRY(entries_of(arguments));
      // The steps count the entries, which the new dict copies.
      meter_.spend(entries.size());
      return Value::dict(Dict(std::move(entries)));
    }
    case FunctionName::Namespace: {
      const std::vector<Dict::Entry> entries = SL_TRY(entries_of(arguments));
      meter_.spend(entries.size());
      Namespace& made = own<Namespace>();
      for (const auto& [name, value] : entries) {
        SL_TRY(made.set(name.as_text().value_or(""), value));
      }
      return Value::foreign(&made);
    }
    case FunctionName::RaiseException: {
      const auto bound = SL_TRY(python::bind("raise_exception", arguments, {"message"}, 1));
      return invalid(python::str_of(*bound[0], meter_));
    }
    case FunctionName::StrftimeNow: {
      const auto bound = SL_TRY(python::bind("strftime_now", arguments, {"format"}, 1));
      const auto format = bound[0]->as_text();
      if (!format) return invalid("strftime() argument 1 must be str");
      // Each character of the format costs a step, because a field may be longer than its letter.
      if (!meter_.spend(format->size())) return Value();
      return Value::text(strftime(*format, options_.now));
    }
  }
  return Value();
}

std::string strftime(std::string_view format, WallTime time) {
  const Calendar calendar(time);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool is_field = format[i] == '%' && i + 1 < format.size();
    const auto text = is_field ? calendar.field(format[i + 1]) : std::nullopt;
    if (text) {
      out += *text;
      ++i;
    } else {
      out += format[i];
    }
  }
  return out;
}

const Value* Scope::find_here(std::string_view name) const {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const auto& variable) { return variable.first == name; });
  return found == variables.end() ? nullptr : &found->second;
}

void Scope::set(std::string_view name, Value value) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const auto& variable) { return variable.first == name; });
  if (found != variables.end()) {
    found->second = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

Result<Value> Namespace::attribute(std::string_view name) {
  const auto found = std::find_if(attributes_.begin(), attributes_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found != attributes_.end()) return found->second;
  return Value::undefined("'Namespace object' has no attribute '" + std::string(name) + "'");
}

Result<Done> Namespace::set(std::string_view name, Value value) {
  // The sandbox of transformers has this rule.
  if (name.starts_with('_')) {
    return invalid("Chat templates cannot store underscore-prefixed attributes on a namespace");
  }
  const auto found = std::find_if(attributes_.begin(), attributes_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found != attributes_.end()) {
    found->second = std::move(value);
  } else {
    attributes_.emplace_back(name, std::move(value));
  }
  return Done{};
}

Result<Value> Macro::attribute(std::string_view name) {
  if (name == "name") return Value::text(definition_.text);
  return Value::undefined("'Macro object' has no attribute '" + std::string(name) + "'");
}

Result<Value> Function::attribute(std::string_view name) {
  return Value::undefined("'function object' has no attribute '" + std::string(name) + "'");
}

}  // namespace sightline::jinja
