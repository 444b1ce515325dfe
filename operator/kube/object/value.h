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

// A JSON value that can be changed: what Kubernetes objects are kept as. Names of members are
// sorted, so that equal values have equal texts and the order in which they came tells nothing.
// Reads of the wrong kind give an empty optional, an empty view or nothing to iterate.
// Thread safety: as of a standard container.
class Value {
 public:
  using Items = std::vector<Value>;
  using Members = std::map<std::string, Value, std::less<>>;
  using Path = std::initializer_list<std::string_view>;

  Value() = default;  // null
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
  // An object with these members; of a name given twice the first one counts.
  static Value object(std::initializer_list<Members::value_type> members = {}) {
    return Members(members);
  }
  static Value array(std::initializer_list<Value> items = {}) { return Items(items); }

  // An object or array. Of duplicate names the last one counts. Errors: as json::Document::parse; a
  // number that is no integer of 64 bits is kept as the nearest double.
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
  // Members of an object, elements of an array; 0 of others.
  [[nodiscard]] std::size_t size() const;

  // A null value where there is none. The reference lives as long as this value is not changed.
  [[nodiscard]] const Value& operator[](std::string_view name) const;
  [[nodiscard]] const Value& at(Path path) const;
  [[nodiscard]] bool contains(std::string_view name) const;

  // The member of that name, made if there is none; what is no object becomes one.
  Value& member(std::string_view name);
  // Puts a value at the end of a path of names, with the objects above it.
  void set(Path path, Value value);
  // Whether there was one.
  bool erase(Path path);
  // The elements of a member that is an array, moved out; none of others.
  [[nodiscard]] Items take_items(std::string_view name) &&;
  // What is no array becomes one.
  void append(Value value);
  // JSON Merge Patch (RFC 7386): null removes a member, objects are merged, the rest is replaced.
  void merge(const Value& patch);

  // One line, names sorted. What is no UTF-8 is not written correctly.
  [[nodiscard]] std::string to_text() const;

  // Order of members does not matter; 1 and 1.0 are the same number.
  friend bool operator==(const Value& left, const Value& right);

 private:
  void write(std::string& out) const;

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Items, Members> data_;
};

}  // namespace sightline::object
