// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/object/timestamp.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "common/base/number.h"

namespace sightline::object {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Days = std::chrono::time_point<std::chrono::system_clock, days>;

constexpr int kYearMax = 2261;  // the limit of 64-bit nanoseconds

void append_padded(std::string& out, std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  out.append(width - std::min(width, digits.size()), '0').append(digits);
}

std::string to_seconds_text(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const auto second = static_cast<std::uint64_t>(std::chrono::floor<seconds>(time - day).count());
  std::string out;
  append_padded(out, static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, second / 3600, 2);
  out += ':';
  append_padded(out, second / 60 % 60, 2);
  out += ':';
  append_padded(out, second % 60, 2);
  return out;
}

// Removes a number of this many digits from the front. Returns nothing if they are missing, or if
// the number is above max.
std::optional<int> take(std::string_view& text, std::size_t digits, std::uint32_t max) {
  if (text.size() < digits) return std::nullopt;
  const auto number = whole_number(text.substr(0, digits), max);
  if (!number) return std::nullopt;
  text.remove_prefix(digits);
  return static_cast<int>(*number);
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Days> take_date(std::string_view& text) {
  const auto year = take(text, 4, kYearMax);
  if (!year || *year < 1970 || !take(text, '-')) return std::nullopt;
  const auto month = take(text, 2, 12);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take(text, 2, 31);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  return date.ok() ? std::optional<Days>(date) : std::nullopt;
}

// "hh:mm".
std::optional<minutes> take_minutes(std::string_view& text) {
  const auto hour = take(text, 2, 23);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take(text, 2, 59);
  if (!minute) return std::nullopt;
  return hours(*hour) + minutes(*minute);
}

std::optional<nanoseconds> take_fraction(std::string_view& text) {
  if (!take(text, '.')) return nanoseconds(0);
  std::int64_t count = 0;
  std::size_t digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    count = count * 10 + (text.front() - '0');
    text.remove_prefix(1);
    if (++digits > 9) return std::nullopt;
  }
  if (digits == 0) return std::nullopt;
  for (; digits < 9; ++digits) count *= 10;
  return nanoseconds(count);
}

// "Z" or an offset, for example "+02:00".
std::optional<minutes> offset_of(std::string_view text) {
  if (text == "Z" || text == "z") return minutes(0);
  const bool is_negative = !text.empty() && text.front() == '-';
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const auto offset = take_minutes(text);
  if (!offset || !text.empty()) return std::nullopt;
  return is_negative ? -*offset : *offset;
}

}  // namespace

std::string to_timestamp(WallTime time) { return to_seconds_text(time) + "Z"; }

std::string to_micro_timestamp(WallTime time) {
  const auto whole = std::chrono::floor<seconds>(time);
  std::string out = to_seconds_text(time) + ".";
  append_padded(
      out, static_cast<std::uint64_t>(std::chrono::floor<microseconds>(time - whole).count()), 6);
  return out + "Z";
}

std::optional<WallTime> parse_timestamp(std::string_view text) {
  const auto date = take_date(text);
  if (!date || !(take(text, 'T') || take(text, 't'))) return std::nullopt;
  const auto time = take_minutes(text);
  if (!time || !take(text, ':')) return std::nullopt;
  // 60 is a leap second (RFC 3339, section 5.6).
  const auto second = take(text, 2, 60);
  if (!second) return std::nullopt;
  const auto fraction = take_fraction(text);
  const auto offset = fraction ? offset_of(text) : std::nullopt;
  if (!offset) return std::nullopt;
  return WallTime(*date) + *time + seconds(*second) + *fraction - *offset;
}

}  // namespace sightline::object
