// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>
#include <charconv>

#include "router/prompt/template/jinja/syntax.h"
#include "router/prompt/template/jinja/template.h"
#include "router/prompt/template/python/text.h"

namespace sightline::jinja {
namespace {

// The longest operators come first. The first match is then the right one.
constexpr std::array<std::string_view, 25> kOperators{
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Converts line breaks as Jinja2 does. All become \n, and one at the end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) SL_TRY(read_text_and_tag());
    push(TokenKind::End, {});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  [[nodiscard]] Error fail(std::string_view message) const {
    return error_at(line_, ErrorCode::InvalidArgument, message);
  }
  void push(TokenKind kind, std::string text, python::Value number = {}) {
    tokens_.push_back(Token{kind, line_, std::move(text), std::move(number)});
  }
  void advance(std::size_t count) {
    line_ += static_cast<std::uint32_t>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                   source_.begin() + static_cast<std::ptrdiff_t>(at_ + count), '\n'));
    at_ += count;
  }
  void skip_blanks() {
    std::size_t count = 0;
    while (at_ + count < source_.size()) {
      std::size_t next = at_ + count;
      if (!python::is_space(python::next_code_point(source_, next))) break;
      count = next - at_;
    }
    advance(count);
  }

  Result<Done> read_text_and_tag() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        add_text(rest());
        advance(source_.size() - at_);
        return Done{};
      }
      const char c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    const bool is_signed = sign == '-' || sign == '+';
    add_text(text_before_tag(text, kind, sign));
    advance(tag - at_);
    const std::size_t opening = is_signed ? 3 : 2;
    if (kind == '#') return read_comment(opening);
    if (kind == '%' && is_raw_tag(opening)) return read_raw(opening);
    push(kind == '{' ? TokenKind::PrintBegin : TokenKind::StatementBegin, {});
    advance(opening);
    return read_tag(kind == '{');
  }

  // Returns the text that remains before a tag. The sign "-" strips all white space before the tag.
  // Without a sign, lstrip_blocks strips the blanks between the start of the line and a tag that
  // does not print.
  std::string_view text_before_tag(std::string_view text, char kind, char sign) const {
    if (sign == '-') return python::strip(text, python::Side::Right);
    if (sign == '+' || kind == '{') return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    const bool begins_line = line_start > 0 || starts_line_;
    const std::string_view blanks = text.substr(line_start);
    const bool is_blank_line = python::strip(blanks, python::Side::Both).empty();
    return begins_line && is_blank_line ? text.substr(0, line_start) : text;
  }

  void add_text(std::string_view text) {
    if (!text.empty()) push(TokenKind::Text, std::string(text));
  }

  // Handles the text after a closing delimiter. The sign "-" strips white space. trim_blocks strips
  // one line break.
  void finish_tag(char sign, bool trims_newline) {
    const std::size_t begin = at_;
    if (sign == '-') {
      skip_blanks();
    } else if (sign != '+' && trims_newline && peek() == '\n') {
      advance(1);
    }
    starts_line_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  Result<Done> read_comment(std::size_t opening) {
    const std::size_t end = source_.find("#}", at_ + opening);
    if (end == std::string::npos) return fail("Missing end of comment tag");
    const char before = end > at_ + opening ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    finish_tag(before == '-' || before == '+' ? before : '\0', true);
    return Done{};
  }

  [[nodiscard]] std::size_t skip_from(std::size_t at) const {
    while (at < source_.size() && is_blank(source_[at])) ++at;
    return at;
  }

  // Returns the offset behind `{% word %}` and its closing sign. The inside of the tag begins at
  // `at`. Returns 0 for another tag.
  std::pair<std::size_t, char> match_bare_tag(std::size_t at, std::string_view word) const {
    at = skip_from(at);
    if (source_.compare(at, word.size(), word) != 0) return {0, '\0'};
    at = skip_from(at + word.size());
    char sign = '\0';
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) sign = source_[at++];
    if (source_.compare(at, 2, "%}") != 0) return {0, '\0'};
    return {at + 2, sign};
  }

  [[nodiscard]] bool is_raw_tag(std::size_t opening) const {
    const auto [end, sign] = match_bare_tag(at_ + opening, "raw");
    return end != 0 && sign != '+';
  }

  Result<Done> read_raw(std::size_t opening) {
    const auto [begin, sign] = match_bare_tag(at_ + opening, "raw");
    advance(begin - at_);
    if (sign == '-') skip_blanks();
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 2)) {
      const char mark = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const bool is_signed = mark == '-' || mark == '+';
      const auto [end, end_sign] = match_bare_tag(tag + (is_signed ? 3 : 2), "endraw");
      if (end == 0) continue;
      starts_line_ = at_ > 0 && source_[at_ - 1] == '\n';
      add_text(text_before_tag(std::string_view(source_).substr(at_, tag - at_), '%', mark));
      advance(end - at_);
      finish_tag(end_sign, true);
      return Done{};
    }
    return fail("Missing end of raw directive");
  }

  // Returns the length and the sign of the closing delimiter at this place. The length is 0 without
  // a delimiter.
  [[nodiscard]] std::pair<std::size_t, char> closing(bool is_print) const {
    const std::string_view end = is_print ? "}}" : "%}";
    if (rest().starts_with(end)) return {2, '\0'};
    const char sign = peek();
    const bool is_sign = sign == '-' || (sign == '+' && !is_print);
    if (is_sign && rest().substr(1).starts_with(end)) return {3, sign};
    return {0, '\0'};
  }

  Result<Done> read_tag(bool is_print) {
    // The closing brackets that are still missing.
    std::string open;
    while (at_ < source_.size()) {
      skip_blanks();
      if (at_ >= source_.size()) break;
      if (const auto [size, sign] = closing(is_print); size > 0 && open.empty()) {
        push(is_print ? TokenKind::PrintEnd : TokenKind::StatementEnd, {});
        advance(size);
        finish_tag(sign, !is_print);
        return Done{};
      }
      SL_TRY(read_token(open));
    }
    return fail("unexpected end of template inside a tag");
  }

  Result<Done> read_token(std::string& open) {
    const char c = peek();
    if (is_digit(c)) return read_number();
    if (is_name_start(c)) {
      std::size_t size = 1;
      while (is_name_part(peek(size))) ++size;
      push(TokenKind::Name, std::string(rest().substr(0, size)));
      advance(size);
      return Done{};
    }
    if (c == '"' || c == '\'') return read_string(c);
    return read_operator(open);
  }

  Result<Done> read_operator(std::string& open) {
    const auto* found =
        std::find_if(kOperators.begin(), kOperators.end(),
                     [&](std::string_view candidate) { return rest().starts_with(candidate); });
    if (found == kOperators.end()) {
      std::size_t end = at_;
      python::next_code_point(source_, end);
      return fail("unexpected char '" + source_.substr(at_, end - at_) + "'");
    }
    static constexpr std::string_view kOpening = "{([";
    static constexpr std::string_view kClosing = "})]";
    if (const auto i = kOpening.find(*found); i != std::string_view::npos) {
      open += kClosing[i];
    } else if (kClosing.find(*found) != std::string_view::npos) {
      const std::string bracket(*found);
      if (open.empty()) return fail("unexpected '" + bracket + "'");
      if (open.back() != bracket[0]) {
        return fail("unexpected '" + bracket + "', expected '" + open.back() + "'");
      }
      open.pop_back();
    }
    push(TokenKind::Operator, std::string(*found));
    advance(found->size());
    return Done{};
  }

  Result<Done> read_number() {
    std::string digits;
    std::size_t size = 0;
    int base = 10;
    const char marker = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (marker == 'x' || marker == 'o' || marker == 'b')) {
      base = marker == 'x' ? 16 : marker == 'o' ? 8 : 2;
      size = 2;
    }
    const auto take_digits = [&] {
      const auto belongs = [&](char c) { return base == 16 ? is_hex_digit(c) : is_digit(c); };
      while (belongs(peek(size)) || (peek(size) == '_' && belongs(peek(size + 1)))) {
        if (peek(size) != '_') digits += peek(size);
        ++size;
      }
    };
    take_digits();
    const bool is_real = base == 10 && take_fraction(digits, size, take_digits);
    python::Value number;
    const char* const end = digits.data() + digits.size();
    if (is_real) {
      double value = 0;
      if (std::from_chars(digits.data(), end, value).ec != std::errc{}) {
        return fail("number out of range");
      }
      number = python::Value::real(value);
    } else {
      std::int64_t value = 0;
      const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
      if (error != std::errc{} || stop != end) return fail("invalid integer");
      number = python::Value::integer(value);
    }
    push(is_real ? TokenKind::Real : TokenKind::Integer, {}, std::move(number));
    advance(size);
    return Done{};
  }

  // Reads ".5" and "e-3" after the digits of a number. "1.x" and "1e" are not fractions.
  template <class TakeDigits>
  bool take_fraction(std::string& digits, std::size_t& size, TakeDigits take_digits) {
    bool is_real = false;
    const bool follows_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!follows_dot && peek(size) == '.' && is_digit(peek(size + 1))) {
      digits += '.';
      ++size;
      take_digits();
      is_real = true;
    }
    const std::size_t sign = peek(size + 1) == '+' || peek(size + 1) == '-' ? 1 : 0;
    if (!follows_dot && (peek(size) | 0x20) == 'e' && is_digit(peek(size + 1 + sign))) {
      digits += 'e';
      if (sign == 1 && peek(size + 1) == '-') digits += '-';
      size += 1 + sign;
      take_digits();
      is_real = true;
    }
    return is_real;
  }

  Result<Done> read_string(char quote) {
    std::size_t size = 1;
    while (at_ + size < source_.size() && peek(size) != quote) size += peek(size) == '\\' ? 2 : 1;
    if (at_ + size >= source_.size())
      return fail("unexpected char '" + std::string(1, quote) + "'");
    std::string text = SL_TRY(unescape(rest().substr(1, size - 1)));
    push(TokenKind::String, std::move(text));
    advance(size + 1);
    return Done{};
  }

  // Replaces escapes as Python's unicode_escape does.
  Result<std::string> unescape(std::string_view raw) const {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\' || i + 1 >= raw.size()) {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];
      static constexpr std::string_view kFrom = "\\'\"abfnrtv\n";
      static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
      if (const auto k = kFrom.find(c); k != std::string_view::npos) {
        if (k < kTo.size()) out += kTo[k];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        i += SL_TRY(append_hex_escape(out, raw.substr(i + 1, digits), digits));
      } else if (c >= '0' && c <= '7') {
        std::size_t size = 1;
        while (size < 3 && i + size < raw.size() && raw[i + size] >= '0' && raw[i + size] <= '7') {
          ++size;
        }
        std::uint32_t value = 0;
        std::from_chars(raw.data() + i, raw.data() + i + size, value, 8);
        python::append_code_point(out, value);
        i += size - 1;
      } else if (c == 'N') {
        return fail("string escapes \\N{…} are not supported");
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  Result<std::size_t> append_hex_escape(std::string& out, std::string_view digits,
                                        std::size_t wanted) const {
    std::uint32_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
    const bool is_scalar = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    if (digits.size() != wanted || error != std::errc{} || stop != end || !is_scalar) {
      return fail("invalid escape in a string");
    }
    python::append_code_point(out, value);
    return wanted;
  }

  std::string source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool starts_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Error error_at(std::uint32_t line, ErrorCode code, std::string_view message) {
  return client_error(code, "line " + std::to_string(line) + ": " + std::string(message));
}

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kSourceBytesMax) {
    return client_error(ErrorCode::TooLarge, "the template is longer than " +
                                                 std::to_string(kSourceBytesMax) + " bytes");
  }
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace sightline::jinja
