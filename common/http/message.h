// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sightline::http {

// A field of a header: two views into its Headers.
struct Field {
  std::string_view name;
  std::string_view value;
};

// Header fields in the order in which they came. Names keep their case, and comparisons ignore it.
// Views into a Headers object are valid until its next change.
// Thread safety: one thread at a time.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Field> fields);

  // Appends a field. Replaces CR, LF and NUL by blanks, because they would break the message's
  // framing.
  void add(std::string_view name, std::string_view value);
  // Replaces all fields of this name by one.
  void set(std::string_view name, std::string_view value);
  // Removes all fields of this name.
  void remove(std::string_view name);
  void clear();

  // The first field of this name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // True if a field of this name lists the token. Lists are comma-separated. Case does not count.
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Field operator[](std::size_t position) const;

  class Iterator {
   public:
    Iterator(const Headers* headers, std::size_t position)
        : headers_(headers), position_(position) {}
    Field operator*() const { return (*headers_)[position_]; }
    Iterator& operator++() {
      ++position_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return position_ == other.position_; }

   private:
    const Headers* headers_;
    std::size_t position_;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, entries_.size()}; }

 private:
  friend Headers end_to_end(const Headers& headers);
  struct Entry {
    std::uint32_t offset;
    std::uint32_t name_bytes;
    std::uint32_t value_bytes;
  };
  // Names and values, one after the other.
  std::string text_;
  std::vector<Entry> entries_;
};

// A whole request from a client. The body has at least 64 spare bytes of capacity, which simdjson's
// parser needs to work without a copy. The server answers `Expect` and removes it.
struct Request {
  std::string method;
  std::string target;
  Headers headers;
  std::string body;
  // For example "192.0.2.7:51234".
  std::string peer;

  // The target without its query. An absolute target also loses scheme and authority.
  [[nodiscard]] std::string_view path() const;
  // The part after '?'. Empty without a query.
  [[nodiscard]] std::string_view query() const;
};

// A whole response. The server writes Content-Length, Transfer-Encoding and Connection: it leaves
// out fields of these names.
struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

// A client's request without its body. Host, Content-Length and Connection are added on sending.
struct RequestHead {
  std::string method;
  std::string target;
  Headers headers;
};

// The phrase of a status, for example "Not Found" (RFC 9110 section 15). "Unknown" for a status
// that the table does not have.
std::string_view reason_of(int status);

// True if the two differ at most in the case of ASCII letters.
bool equal_names(std::string_view a, std::string_view b);

// The fields that a proxy forwards. Leaves out the fields of one hop (RFC 9110 section 7.6.1):
// Connection and the fields it names, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade, Proxy-*.
Headers end_to_end(const Headers& headers);

}  // namespace sightline::http
