// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

namespace sightline::object {

// A JSON value that can be changed, for Kubernetes objects. Its members are sorted by name, so
// equal values have equal texts, independent of the source's order. Reading a value as the wrong
// kind gives an empty optional, an empty view or an empty range.
// Thread safety: the same as a standard container.
class Value {
 public:
  using Items = std::vector<Value>;
  using Members = std::map<std::string, Value, std::less<>>;
  using Path = std::initializer_list<std::string_view>;

  // Null.
  Value() = default;
  // NOLINTBEGIN: literals are values
  Value(std::same_as<bool> auto boolean) : data_(boolean) {}
  Value(std::integral auto number) requires(!std::same_as<decltype(number), bool>)
      : data_(static_cast<std::int64_t>(number)) {}
  Value(double number) : data_(number) {}
  Value(std::string text) : data_(std::move(text)) {}
  Value(std::string_view text) : data_(std::string(text)) {}
  Value(const char* text) : data_(std::string(text)) {}
  Value(Items items) : data_(std::move(items)) {}
  Value(Members members) : data_(std::move(members)) {}
  // NOLINTEND
  // An object with these members. Of equal names the first one counts.
  static Value object(std::initializer_list<Members::value_type> members = {}) {
    return Members(members);
  }
  static Value array(std::initializer_list<Value> items = {}) { return Items(items); }

  // Parses an object or array. Of equal names the last one counts. A number beyond a 64-bit
  // integer becomes the nearest double. Errors: see json::Document::parse().
  static Result<Value> parse(std::string text, const json::ParseLimits& limits = {});

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Members>(data_); }
  [[nodiscard]] bool is_array() const { return std::holds_alternative<Items>(data_); }
  [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(data_); }

  [[nodiscard]] std::optional<bool> boolean() const;
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] const Items& items() const;
  [[nodiscard]] const Members& members() const;
  // The number of members or elements. 0 for other kinds.
  [[nodiscard]] std::size_t size() const;

  // The member of this name, or a null value. The reference is valid while this value is unchanged.
  [[nodiscard]] const Value& operator[](std::string_view name) const;
  [[nodiscard]] const Value& at(Path path) const;
  [[nodiscard]] bool contains(std::string_view name) const;

  // The member of this name. Creates it if it is missing. Turns a value of another kind into an
  // object.
  Value& member(std::string_view name);
  // Sets the value at the end of a path of names. Creates the objects on the way.
  void set(Path path, Value value);
  // Removes a member. Returns whether it existed.
  bool erase(Path path);
  // Moves the elements of a member out. Empty if the member is no array.
  [[nodiscard]] Items take_items(std::string_view name) &&;
  // Adds an element. Turns a value of another kind into an array.
  void append(Value value);
  // Applies a JSON Merge Patch (RFC 7386): null removes a member, objects are merged, other values
  // are replaced.
  void merge(const Value& patch);

  // One line of JSON with sorted names. Text must be valid UTF-8.
  [[nodiscard]] std::string to_text() const;

  // The order of members does not matter. 1 and 1.0 are equal.
  friend bool operator==(const Value& left, const Value& right);

 private:
  void write(std::string& out) const;

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Items, Members> data_;
};

}  // namespace sightline::object
