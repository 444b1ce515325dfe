// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/print.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "common/base/json.h"

#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/text.h"

namespace sightline::python {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

void append_hex(std::string& out, std::uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += kHexDigits[(value >> static_cast<unsigned>(shift)) & 15U];
  }
}

void append_repr_character(std::string& out, std::string_view character, char quote) {
  std::size_t at = 0;
  const char32_t c = next_code_point(character, at);
  if (c == '\\' || c == static_cast<unsigned char>(quote)) {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    out += character;
  } else if (c < 0x100) {
    out += "\\x";
    append_hex(out, c, 2);
  } else if (c < 0x10000) {
    out += "\\u";
    append_hex(out, c, 4);
  } else {
    out += "\\U";
    append_hex(out, c, 8);
  }
}

void append_text_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  // Python prefers single quotes. It uses double quotes if the text has only single ones.
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    next_code_point(text, at);
    append_repr_character(out, text.substr(begin, at - begin), quote);
  }
  out += quote;
}

void append_items_repr(std::string& out, const Sequence& sequence, Meter& meter) {
  const bool is_tuple = sequence.kind == SequenceKind::Tuple;
  out += is_tuple ? '(' : '[';
  bool is_first = true;
  for (const Value& item : *sequence.items) {
    if (!is_first) out += ", ";
    is_first = false;
    append_repr(out, item, meter);
    if (meter.is_exhausted()) return;
  }
  if (is_tuple && sequence.items->size() == 1) out += ',';
  out += is_tuple ? ')' : ']';
}

void append_dict_repr(std::string& out, const Dict& dict, Meter& meter) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!is_first) out += ", ";
    is_first = false;
    append_repr(out, key, meter);
    out += ": ";
    append_repr(out, value, meter);
    if (meter.is_exhausted()) return;
  }
  out += '}';
}

// The digits of a positive finite number, and the power of ten of the first digit.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

// std::to_chars() without a precision gives the shortest digits that read back to the same number,
// as Python's repr does.
Decimal shortest_decimal(double number) {
  std::array<char, 40> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                          std::chars_format::scientific);
  SL_CHECK(error == std::errc{});
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  Decimal decimal;
  for (const char c : text.substr(0, e)) {
    if (c != '.') decimal.digits += c;
  }
  const std::string_view exponent = text.substr(e + 1);
  const bool is_negative = exponent.front() == '-';
  std::from_chars(exponent.data() + 1, exponent.data() + exponent.size(), decimal.exponent);
  if (is_negative) decimal.exponent = -decimal.exponent;
  return decimal;
}

class JsonWriter {
 public:
  JsonWriter(std::string& out, const JsonStyle& style, Meter& meter)
      : out_(out), style_(style), meter_(meter) {}

  Result<Done> write(const Value& value) {
    // The caller sees the exhausted meter and ignores the incomplete text.
    if (!meter_.spend()) return Done{};
    if (const auto text = value.as_text()) {
      write_text(*text);
      return Done{};
    }
    if (const Sequence* sequence = value.get_if<Sequence>();
        sequence != nullptr && sequence->kind <= SequenceKind::Tuple) {
      return write_items(*sequence->items);
    }
    if (const Dict* dict = value.as_dict()) return write_members(*dict);
    if (const auto scalar = scalar_text(value)) {
      out_ += *scalar;
      return Done{};
    }
    return client_error(
        ErrorCode::InvalidArgument,
        "Object of type " + std::string(value.type_name()) + " is not JSON serializable");
  }

 private:
  void write_text(std::string_view text) {
    meter_.spend_text(text.size());
    if (style_.ensure_ascii) {
      write_ascii(text);
    } else {
      json::append_quoted(out_, text);
    }
  }

  void write_ascii(std::string_view text) {
    std::string quoted;
    json::append_quoted(quoted, text);
    for (std::size_t at = 0; at < quoted.size();) {
      const char32_t c = next_code_point(quoted, at);
      // DEL is escaped as well, because Python escapes all characters from U+007F on.
      if (c < 0x7F) {
        out_ += static_cast<char>(c);
      } else if (c < 0x10000) {
        write_escape(c);
      } else {
        // Characters above U+FFFF become a surrogate pair.
        write_escape(0xD7C0U + (c >> 10U));
        write_escape(0xDC00U | (c & 0x3FFU));
      }
    }
  }

  void write_escape(std::uint32_t unit) {
    out_ += "\\u";
    append_hex(out_, unit, 4);
  }

  static std::optional<std::string> scalar_text(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* flag = value.get_if<bool>()) return *flag ? "true" : "false";
    if (const double* real = value.get_if<double>()) {
      // json.dumps writes these values too, although they are not valid JSON.
      if (std::isnan(*real)) return "NaN";
      if (std::isinf(*real)) return *real < 0 ? "-Infinity" : "Infinity";
      return repr_of(*real);
    }
    if (const auto integer = value.as_integer()) return std::to_string(*integer);
    if (const auto* big = value.get_if<BigInteger>()) return *big->digits;
    return std::nullopt;
  }

  void write_line_break() {
    if (!style_.indent) return;
    out_ += '\n';
    for (std::size_t i = 0; i < depth_; ++i) out_ += *style_.indent;
    // The indentation is charged, because deep values with a wide indent may become huge.
    meter_.spend_text(depth_ * style_.indent->size());
  }

  void begin_item(bool is_first) {
    if (!is_first) out_ += style_.item_separator;
    write_line_break();
  }

  Result<Done> write_items(const std::vector<Value>& items) {
    out_ += '[';
    ++depth_;
    bool is_first = true;
    for (const Value& item : items) {
      begin_item(is_first);
      is_first = false;
      SL_TRY(write(item));
      if (meter_.is_exhausted()) return Done{};
    }
    --depth_;
    if (!is_first) write_line_break();
    out_ += ']';
    return Done{};
  }

  Result<Done> write_members(const Dict& dict) {
    std::vector<const Dict::Entry*> members;
    members.reserve(dict.size());
    for (const Dict::Entry& entry : dict.entries()) members.push_back(&entry);
    if (style_.sort_keys) SL_TRY(sort_by_key(members));
    out_ += '{';
    ++depth_;
    bool is_first = true;
    for (const Dict::Entry* member : members) {
      begin_item(is_first);
      is_first = false;
      SL_TRY(write_key(member->first));
      out_ += style_.key_separator;
      SL_TRY(write(member->second));
      if (meter_.is_exhausted()) return Done{};
    }
    --depth_;
    if (!is_first) write_line_break();
    out_ += '}';
    return Done{};
  }

  Result<Done> sort_by_key(std::vector<const Dict::Entry*>& members) {
    std::optional<Error> failure;
    std::stable_sort(members.begin(), members.end(), [&](const auto* a, const auto* b) {
      auto result = less(a->first, b->first, meter_);
      if (!result.ok()) failure = std::move(result).error();
      return result.ok() && *result;
    });
    if (failure) return *std::move(failure);
    return Done{};
  }

  Result<Done> write_key(const Value& key) {
    if (const auto text = key.as_text()) {
      write_text(*text);
    } else if (const auto scalar = scalar_text(key)) {
      write_text(*scalar);
    } else {
      return client_error(
          ErrorCode::InvalidArgument,
          "keys must be str, int, float, bool or None, not " + std::string(key.type_name()));
    }
    return Done{};
  }

  std::string& out_;
  const JsonStyle& style_;
  Meter& meter_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string repr_of(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string out = std::signbit(number) ? "-" : "";
  const auto [digits, exponent] = shortest_decimal(std::fabs(number));
  const auto count = static_cast<int>(digits.size());
  // Python uses an exponent outside of this range.
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    const std::string power = std::to_string(std::abs(exponent));
    return out.append(exponent < 0 ? "e-" : "e+").append(power.size() < 2 ? "0" : "").append(power);
  }
  if (exponent < 0) {
    return out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  }
  if (count <= exponent + 1) {
    // Python shows a float without a fraction as "1.0".
    return out.append(digits)
        .append(static_cast<std::size_t>(exponent + 1 - count), '0')
        .append(".0");
  }
  const auto whole = static_cast<std::size_t>(exponent + 1);
  return out.append(digits, 0, whole).append(".").append(digits, whole);
}

void append_repr(std::string& out, const Value& value, Meter& meter) {
  if (!meter.spend()) return;
  if (const auto text = value.as_text()) {
    meter.spend_text(text->size());
    append_text_repr(out, *text);
  } else if (const Sequence* sequence = value.get_if<Sequence>()) {
    append_items_repr(out, *sequence, meter);
  } else if (const Dict* dict = value.as_dict()) {
    append_dict_repr(out, *dict, meter);
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    append_str(out, value, meter);
  }
}

void append_str(std::string& out, const Value& value, Meter& meter) {
  if (!meter.spend()) return;
  if (const auto text = value.as_text()) {
    meter.spend_text(text->size());
    if (!meter.is_exhausted()) out += *text;
  } else if (value.is_none()) {
    out += "None";
  } else if (const bool* flag = value.get_if<bool>()) {
    out += *flag ? "True" : "False";
  } else if (const double* real = value.get_if<double>()) {
    out += repr_of(*real);
  } else if (const auto integer = value.as_integer()) {
    out += std::to_string(*integer);
  } else if (const auto* big = value.get_if<BigInteger>()) {
    out += *big->digits;
    // Only containers have a depth. Their str() is their repr().
  } else if (value.depth() > 0 && !value.is_callable()) {
    append_repr(out, value, meter);
  } else if (!value.is_undefined()) {
    out.append("<").append(value.type_name()).append(">");
  }
}

Result<Done> append_json(std::string& out, const Value& value, const JsonStyle& style,
                         Meter& meter) {
  return JsonWriter(out, style, meter).write(value);
}

std::string str_of(const Value& value, Meter& meter) {
  std::string out;
  append_str(out, value, meter);
  return out;
}

std::string repr_of(const Value& value, Meter& meter) {
  std::string out;
  append_repr(out, value, meter);
  return out;
}

}  // namespace sightline::python
