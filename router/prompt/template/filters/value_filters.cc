// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "router/prompt/template/filters/filters.h"
#include "router/prompt/template/python/format.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"
#include "router/prompt/template/python/text.h"

// Filters on texts, numbers and single values. Filters that visit items are in sequence_filters.cc.
namespace sightline::filters {
namespace {

using python::Value;

// The most digits of round(). They limit the buffer below.
constexpr std::int64_t kRoundDigitsMax = 300;

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

// Converts a value as soft_str does. A text stays as it is, other values are printed.
Value soft_text(const Application& filter) {
  if (filter.value.as_text()) return filter.value;
  return Value::text(python::str_of(filter.value, filter.meter));
}

Result<Value> run_default(const Application& filter) {
  const auto bound =
      SL_TRY(python::bind("default", filter.arguments, {"default_value", "boolean"}, 0));
  const bool covers_false = bound[1] != nullptr && bound[1]->is_true();
  const bool is_missing = filter.value.is_undefined() || (covers_false && !filter.value.is_true());
  if (!is_missing) return filter.value;
  return bound[0] == nullptr ? Value::text({}) : *bound[0];
}

// Filters that are a method of the printed value.
Result<Value> run_text_method(const Application& filter) {
  // Jinja2 prints other values before it calls the method.
  const Value text = soft_text(filter);
  const std::string_view name = filter.name == "trim" ? "strip" : filter.name;
  const auto method = python::find_method(text, name);
  SL_CHECK(method.has_value());
  return python::call_method(python::BoundMethod{text, *method}, filter.arguments, filter.meter);
}

Result<Value> run_string(const Application& filter) { return soft_text(filter); }

// Words begin after white space, hyphens and opening brackets. This is Jinja2's own rule, which
// differs from str.title.
Result<Value> run_title(const Application& filter) {
  const Value value = soft_text(filter);
  const std::string_view text = *value.as_text();
  if (!filter.meter.spend_text(text.size())) return Value();
  std::string out;
  std::size_t word = 0;
  const auto add_word = [&](std::size_t end) {
    if (word < end) {
      std::size_t first = word;
      python::next_code_point(text, first);
      out += python::to_upper(text.substr(word, first - word));
      out += python::to_lower(text.substr(first, end - first));
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = python::next_code_point(text, at);
    if (!python::is_space(c) &&
        std::u32string_view(U"-({[<").find(c) == std::u32string_view::npos) {
      continue;
    }
    add_word(begin);
    out += text.substr(begin, at - begin);
    word = at;
  }
  add_word(text.size());
  return Value::text(std::move(out));
}

Result<Value> run_indent(const Application& filter) {
  const auto bound =
      SL_TRY(python::bind("indent", filter.arguments, {"width", "first", "blank"}, 0));
  std::string margin(4, ' ');
  if (bound[0] != nullptr) {
    if (const auto text = bound[0]->as_text()) {
      margin = *text;
    } else {
      const auto width = bound[0]->as_integer();
      // The width comes from the template. The steps limit the size of the margin.
      if (!width ||
          !filter.meter.spend_text(static_cast<std::size_t>(std::max<std::int64_t>(*width, 0)))) {
        return python::type_error(*bound[0], "indent: width must be a number or a text");
      }
      margin.assign(static_cast<std::size_t>(std::max<std::int64_t>(*width, 0)), ' ');
    }
  }
  const bool indents_first = bound[1] != nullptr && bound[1]->is_true();
  const bool indents_blank = bound[2] != nullptr && bound[2]->is_true();
  const auto given = filter.value.as_text();
  if (!given) {
    return python::type_error(filter.value, "indent: expected a text, got '" +
                                                std::string(filter.value.type_name()) + "'");
  }
  // Jinja2 adds a line break here, and splits the lines after it.
  const std::string text = std::string(*given) + "\n";
  const auto lines = python::split_lines(text, false);
  std::string out = indents_first ? margin : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!filter.meter.spend_text(lines[i].size() + margin.size())) return Value();
    if (i > 0) out += '\n';
    if (i > 0 && (indents_blank || !lines[i].empty())) out += margin;
    out += lines[i];
  }
  return Value::text(std::move(out));
}

Result<Value> run_format(const Application& filter) {
  const Value pattern = soft_text(filter);
  if (filter.arguments.named.empty()) {
    const Value tuple = Value::list(filter.arguments.positional, python::SequenceKind::Tuple);
    return python::format_percent(pattern, tuple, filter.meter);
  }
  std::vector<python::Dict::Entry> entries;
  for (const auto& [name, value] : filter.arguments.named) {
    entries.emplace_back(Value::text(std::string(name)), value);
  }
  return python::format_percent(pattern, Value::dict(python::Dict(std::move(entries))),
                                filter.meter);
}

std::optional<double> parse_real(std::string_view text) {
  // Python accepts white space around a number, underscores in it and a plus sign. from_chars()
  // does not.
  std::string digits(python::strip(text, python::Side::Both));
  std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
  std::string digits(python::strip(text, python::Side::Both));
  std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  const std::string prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!prefix.empty() && digits.starts_with(prefix)) digits.erase(0, 2);
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// int(real). Returns nothing for infinities and NaN.
std::optional<Value> truncated(double real) {
  if (!std::isfinite(real)) return std::nullopt;
  // A value beyond this limit does not fit into 64 bits.
  if (std::fabs(real) < 0x1p63) return Value::integer(static_cast<std::int64_t>(real));
  std::array<char, 400> digits{};
  std::snprintf(digits.data(), digits.size(), "%.0f", real);
  return Value::big_integer(digits.data());
}

Result<Value> run_int(const Application& filter) {
  const auto bound = SL_TRY(python::bind("int", filter.arguments, {"default", "base"}, 0));
  const Value fallback = bound[0] == nullptr ? Value::integer(0) : *bound[0];
  const std::int64_t base = bound[1] == nullptr ? 10 : bound[1]->as_integer().value_or(10);
  const Value& value = filter.value;
  // Undefined is an error, and does not give the default.
  if (value.is_undefined()) return python::type_error(value, {});
  if (const auto text = value.as_text()) {
    if (base < 2 || base > 36) return fallback;
    if (const auto integer = parse_integer(*text, static_cast<int>(base))) {
      return Value::integer(*integer);
    }
    const auto real = parse_real(*text);
    return real ? truncated(*real).value_or(fallback) : fallback;
  }
  if (const auto integer = value.as_integer()) return Value::integer(*integer);
  if (value.get_if<python::BigInteger>() != nullptr) return value;
  if (const double* real = value.get_if<double>()) return truncated(*real).value_or(fallback);
  return fallback;
}

Result<Value> run_float(const Application& filter) {
  const auto bound = SL_TRY(python::bind("float", filter.arguments, {"default"}, 0));
  const Value& value = filter.value;
  if (value.is_undefined()) return python::type_error(value, {});
  std::optional<double> real = value.as_real();
  if (const auto text = value.as_text()) real = parse_real(*text);
  if (real) return Value::real(*real);
  return bound[0] == nullptr ? Value::real(0.0) : *bound[0];
}

Result<Value> run_abs(const Application& filter) {
  const Value& value = filter.value;
  const auto real = value.as_real();
  if (!real) {
    return python::type_error(
        value, "bad operand type for abs(): '" + std::string(value.type_name()) + "'");
  }
  if (*real < 0) return python::negate(value);
  // abs(True) is the integer 1.
  return value.as_integer() ? Value::integer(*value.as_integer()) : value;
}

Result<Value> run_round(const Application& filter) {
  const auto bound = SL_TRY(python::bind("round", filter.arguments, {"precision", "method"}, 0));
  const std::int64_t digits = bound[0] == nullptr ? 0 : bound[0]->as_integer().value_or(0);
  const std::string_view method = bound[1] == nullptr ? "common" : bound[1]->as_text().value_or("");
  const auto real = filter.value.as_real();
  if (!real) {
    return python::type_error(filter.value, "type " + std::string(filter.value.type_name()) +
                                                " doesn't define __round__ method");
  }
  if (digits < 0 || digits > kRoundDigitsMax) {
    return client_error(ErrorCode::Unsupported, "round: only 0 to 300 digits are supported");
  }
  if (method == "common") {
    // round(True) is the integer 1.
    if (filter.value.as_integer()) return Value::integer(*filter.value.as_integer());
    const bool is_big = filter.value.get_if<python::BigInteger>() != nullptr;
    if (is_big || !std::isfinite(*real)) return filter.value;
    // A double may have 309 digits before the point and 300 after it.
    std::array<char, 700> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(digits), *real);
    return Value::real(std::strtod(buffer.data(), nullptr));
  }
  if (method != "ceil" && method != "floor") {
    return invalid("method must be common, ceil or floor");
  }
  // This is Jinja2's own formula, with the same rounding errors.
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *real * scale;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Result<Value> run_attr(const Application& filter) {
  const auto bound = SL_TRY(python::bind("attr", filter.arguments, {"name"}, 1));
  const std::string name = python::str_of(*bound[0], filter.meter);
  // attr reads attributes only. The items of a dict are not attributes.
  if (filter.value.as_dict() != nullptr && !python::find_method(filter.value, name)) {
    return Value::undefined("'dict object' has no attribute '" + name + "'");
  }
  return python::attribute_of(filter.value, name);
}

Result<Value> run_tojson(const Application& filter) {
  const auto bound = SL_TRY(python::bind("tojson", filter.arguments,
                                         {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  python::JsonStyle style;
  style.ensure_ascii = bound[0] != nullptr && bound[0]->is_true();
  style.sort_keys = bound[3] != nullptr && bound[3]->is_true();
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    // json.dumps has this separator if an indentation is set.
    style.item_separator = ",";
    if (const auto text = bound[1]->as_text()) {
      style.indent = std::string(*text);
    } else {
      const std::int64_t width = std::max<std::int64_t>(bound[1]->as_integer().value_or(0), 0);
      if (!filter.meter.spend_text(static_cast<std::size_t>(width))) return Value();
      style.indent = std::string(static_cast<std::size_t>(width), ' ');
    }
  }
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    const auto separators = bound[2]->as_items();
    const bool are_two = separators && separators->size() == 2 && (*separators)[0].as_text() &&
                         (*separators)[1].as_text();
    if (!are_two) return invalid("tojson: separators must be two texts");
    style.item_separator = *(*separators)[0].as_text();
    style.key_separator = *(*separators)[1].as_text();
  }
  std::string out;
  SL_TRY(python::append_json(out, filter.value, style, filter.meter));
  return Value::text(std::move(out));
}

constexpr NamedFilter kFilters[] = {
    {"abs", run_abs},           {"attr", run_attr},           {"capitalize", run_text_method},
    {"d", run_default},         {"default", run_default},     {"float", run_float},
    {"format", run_format},     {"indent", run_indent},       {"int", run_int},
    {"lower", run_text_method}, {"replace", run_text_method}, {"round", run_round},
    {"safe", run_string},       {"string", run_string},       {"title", run_title},
    {"tojson", run_tojson},     {"trim", run_text_method},    {"upper", run_text_method},
};

}  // namespace

Result<Value> apply_filter(const Application& application) {
  for (const auto filters : {std::span<const NamedFilter>(kFilters), sequence_filters()}) {
    const auto found = std::find_if(filters.begin(), filters.end(), [&](const NamedFilter& filter) {
      return filter.name == application.name;
    });
    if (found != filters.end()) return found->run(application);
  }
  return client_error(ErrorCode::Unsupported,
                      "No filter named '" + std::string(application.name) + "'.");
}

}  // namespace sightline::filters
