// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"
#include "router/prompt/template/python/text.h"

namespace sightline::python {
namespace {

// The largest width and precision of one conversion, in characters. They limit the buffer and the
// work of one conversion.
constexpr int kFieldMax = 1000;

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Conversion {
  std::optional<std::string_view> key;
  std::string flags;
  int width = 0;
  std::optional<int> precision;
  char type = 's';
};

// Reads one conversion, after its '%'.
class ConversionReader {
 public:
  ConversionReader(std::string_view pattern, std::size_t& at) : pattern_(pattern), at_(at) {}

  Result<Conversion> read() {
    Conversion conversion;
    if (peek() == '(') conversion.key = SL_TRY(read_key());
    while (std::string_view("-+ 0#").find(peek()) != std::string_view::npos && peek() != '\0') {
      conversion.flags += pattern_[at_++];
    }
    conversion.width = SL_TRY(read_number());
    if (peek() == '.') {
      ++at_;
      conversion.precision = SL_TRY(read_number());
    }
    if (at_ >= pattern_.size()) return invalid("incomplete format");
    conversion.type = pattern_[at_++];
    return conversion;
  }

 private:
  [[nodiscard]] char peek() const { return at_ < pattern_.size() ? pattern_[at_] : '\0'; }

  Result<std::string_view> read_key() {
    const std::size_t end = pattern_.find(')', at_);
    if (end == std::string_view::npos) return invalid("incomplete format key");
    const std::string_view key = pattern_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return key;
  }

  Result<int> read_number() {
    int number = 0;
    while (is_digit(peek())) {
      // The check in the loop also prevents an overflow of the number.
      number = number * 10 + (pattern_[at_++] - '0');
      if (number > kFieldMax) {
        return client_error(ErrorCode::TooLarge,
                            "format: field width above " + std::to_string(kFieldMax));
      }
    }
    return number;
  }

  std::string_view pattern_;
  std::size_t& at_;
};

Result<std::string> number_text(const Conversion& conversion, const Value& value) {
  const bool is_integral =
      std::string_view("diuxXo").find(conversion.type) != std::string_view::npos;
  // The flags and limits are checked, and so they can go to snprintf. It has the same rules as
  // Python for them.
  std::string layout = "%" + conversion.flags;
  if (conversion.width > 0) layout += std::to_string(conversion.width);
  if (conversion.precision) layout += "." + std::to_string(*conversion.precision);
  // A double has at most 309 digits before the point. The buffer holds them, the precision and the
  // width.
  std::array<char, 2 * kFieldMax + 400> buffer{};
  int size = 0;
  if (is_integral) {
    const auto integer = value.as_integer();
    const double* real = value.get_if<double>();
    if (!integer && (real == nullptr ||
                     std::string_view("diu").find(conversion.type) == std::string_view::npos)) {
      return type_error(value, std::string("%") + conversion.type +
                                   " format: a real number is required, not " +
                                   std::string(value.type_name()));
    }
    // The conversion to an integer would be undefined.
    if (real != nullptr && !(std::fabs(*real) < 0x1p63)) {
      return client_error(ErrorCode::Unsupported, "format: number beyond 64 bits");
    }
    const long long number = integer ? *integer : static_cast<long long>(*real);
    // Python writes -0xff. snprintf would write the two's complement.
    if (number < 0 && std::string_view("xXo").find(conversion.type) != std::string_view::npos) {
      return client_error(ErrorCode::Unsupported, "format: hexadecimal of a negative number");
    }
    layout += "ll";
    layout += conversion.type == 'u' ? 'd' : conversion.type;
    size = std::snprintf(buffer.data(), buffer.size(), layout.c_str(), number);
  } else {
    const auto real = value.as_real();
    if (!real) {
      return type_error(value, "must be real number, not " + std::string(value.type_name()));
    }
    layout += conversion.type;
    size = std::snprintf(buffer.data(), buffer.size(), layout.c_str(), *real);
  }
  return std::string(buffer.data(), static_cast<std::size_t>(std::max(size, 0)));
}

std::string padded(const Conversion& conversion, std::string text) {
  if (conversion.precision) {
    // The precision of a text is its largest length in characters.
    text.resize(offset_of(text, static_cast<std::size_t>(*conversion.precision)));
  }
  const std::size_t length = length_of(text);
  const auto width = static_cast<std::size_t>(conversion.width);
  if (length >= width) return text;
  const std::string filler(width - length, ' ');
  const bool is_left = conversion.flags.find('-') != std::string::npos;
  return is_left ? text + filler : filler + text;
}

Result<std::string> converted(const Conversion& conversion, const Value& value, Meter& meter) {
  switch (conversion.type) {
    case 's':
      return padded(conversion, str_of(value, meter));
    case 'r':
      return padded(conversion, repr_of(value, meter));
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
      return number_text(conversion, value);
    default:
      return client_error(ErrorCode::Unsupported, std::string("format: conversion %") +
                                                      conversion.type + " is not supported");
  }
}

}  // namespace

Result<Value> format_percent(const Value& pattern_value, const Value& arguments, Meter& meter) {
  const std::string_view pattern = *pattern_value.as_text();
  const Sequence* tuple = arguments.get_if<Sequence>();
  // Only a tuple gives several values. A list is one value.
  if (tuple != nullptr && tuple->kind != SequenceKind::Tuple) tuple = nullptr;
  const std::size_t count = tuple == nullptr ? 1 : tuple->items->size();
  std::size_t used = 0;
  bool has_key = false;
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t percent = std::min(pattern.find('%', at), pattern.size());
    out.append(pattern, at, percent - at);
    if (!meter.spend_text(percent - at)) return Value();
    if (percent == pattern.size()) break;
    at = percent + 1;
    const Conversion conversion = SL_TRY(ConversionReader(pattern, at).read());
    if (conversion.type == '%') {
      out += '%';
      continue;
    }
    if (conversion.key) {
      has_key = true;
      const Dict* dict = arguments.as_dict();
      if (dict == nullptr) return invalid("format requires a mapping");
      const Value* value = dict->find(*conversion.key);
      // A KeyError of Python has only the key as its message.
      if (value == nullptr) return invalid("'" + std::string(*conversion.key) + "'");
      out += SL_TRY(converted(conversion, *value, meter));
      continue;
    }
    if (used >= count) return invalid("not enough arguments for format string");
    const Value& value = tuple == nullptr ? arguments : (*tuple->items)[used];
    ++used;
    out += SL_TRY(converted(conversion, value, meter));
  }
  // Python accepts surplus arguments if they have an index operator.
  const bool is_indexable = arguments.as_dict() != nullptr || arguments.is_undefined() ||
                            (arguments.as_items() && tuple == nullptr);
  if (!has_key && used < count && !is_indexable) {
    return invalid("not all arguments converted during string formatting");
  }
  return Value::text(std::move(out));
}

Result<Value> format_braces(std::string_view pattern, const Arguments& arguments, Meter& meter) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at++];
    // Each character costs a step, because a field may be longer than its text.
    if (!meter.spend()) return Value();
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at < pattern.size() && pattern[at] == c) {
      out += c;
      ++at;
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    if (c == '}' || end == std::string_view::npos) {
      return invalid("Single '" + std::string(1, c) + "' encountered in format string");
    }
    const std::string_view field = pattern.substr(at, end - at);
    at = end + 1;
    // These characters begin a conversion, a specification, an attribute or an index.
    if (field.find_first_of(".[!:{") != std::string_view::npos) {
      return client_error(ErrorCode::Unsupported,
                          "str.format: only {}, {0} and {name} are supported");
    }
    std::size_t index = next;
    if (field.empty()) {
      ++next;
    } else if (std::all_of(field.begin(), field.end(), is_digit)) {
      const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), index);
      // An index that does not fit into 64 bits is out of range.
      if (error != std::errc{}) index = arguments.positional.size();
    } else {
      const auto named =
          std::find_if(arguments.named.begin(), arguments.named.end(),
                       [&](const auto& argument) { return argument.first == field; });
      // A KeyError of Python has only the key as its message.
      if (named == arguments.named.end()) return invalid("'" + std::string(field) + "'");
      append_str(out, named->second, meter);
      continue;
    }
    if (index >= arguments.positional.size()) {
      return invalid("Replacement index " + std::to_string(index) +
                     " out of range for positional args tuple");
    }
    append_str(out, arguments.positional[index], meter);
  }
  return Value::text(std::move(out));
}

}  // namespace sightline::python
