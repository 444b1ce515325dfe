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

struct Field {
  std::string_view name;
  std::string_view value;
};

// Header fields in the order they came. Names compare without regard to case and keep the case
// they came with. Views into it hold until the next change.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Field> fields);

  // CR, LF and NUL would break the message's framing and are written as blanks.
  void add(std::string_view name, std::string_view value);
  // Replaces every field of that name by one.
  void set(std::string_view name, std::string_view value);
  void remove(std::string_view name);
  void clear();

  // The first field of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // True if a field of that name lists the token (comma-separated, any case).
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
  std::string text_;  // names and values, one after the other
  std::vector<Entry> entries_;
};

// A whole request as a client sent it. The body has at least 64 spare bytes of capacity, which
// simdjson's parser needs to work without a copy. `Expect` is answered by the server and removed.
struct Request {
  std::string method;
  std::string target;
  Headers headers;
  std::string body;
  std::string peer;  // "192.0.2.7:51234"

  // The target without query, and without scheme and authority if it came in absolute form.
  [[nodiscard]] std::string_view path() const;
  // What follows '?'; empty if nothing does.
  [[nodiscard]] std::string_view query() const;
};

// A whole response. Content-Length, Transfer-Encoding and Connection are the server's business:
// fields of these names are left out when it is sent.
struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

// What a client sends apart from its body. Host, Content-Length and Connection are added.
struct RequestHead {
  std::string method;
  std::string target;
  Headers headers;
};

// "Not Found"; "Unknown" for a status without a registered phrase (RFC 9110 section 15).
std::string_view reason_of(int status);

// True if the two are equal but for the case of ASCII letters.
bool equal_names(std::string_view a, std::string_view b);

// The fields that a proxy passes on: without those of one hop (RFC 9110 section 7.6.1: Connection
// and what it names, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade, Proxy-*).
Headers end_to_end(const Headers& headers);

}  // namespace sightline::http
