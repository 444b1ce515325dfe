// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/object/value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace sightline::object {
namespace {

Value value_of(const json::Value& source) {
  switch (source.kind()) {
    case json::Kind::Null:
      return {};
    case json::Kind::Bool:
      return source.boolean().value_or(false);
    case json::Kind::Number:
      // Not as a double, which holds only 53 bits exactly.
      if (const auto whole = source.integer()) return *whole;
      return source.number().value_or(0);
    case json::Kind::String:
      return source.string().value_or("");
    case json::Kind::Array: {
      Value::Items items;
      items.reserve(source.size());
      for (const json::Value item : source) items.push_back(value_of(item));
      return items;
    }
    case json::Kind::Object: {
      Value::Members members;
      for (const json::Value member : source) {
        members.insert_or_assign(std::string(member.name()), value_of(member));
      }
      return members;
    }
  }
  return {};
}

void append_number(std::string& out, auto number) {
  // An integer has at most 20 characters, the shortest form of a double at most 24.
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
  out.append(digits.begin(), end);
}

}  // namespace

Result<Value> Value::parse(std::string text, const json::ParseLimits& limits) {
  return value_of(SL_TRY(json::Document::parse(std::move(text), limits)).root());
}

std::optional<bool> Value::boolean() const {
  const bool* found = std::get_if<bool>(&data_);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::optional<std::int64_t> Value::integer() const {
  const auto* found = std::get_if<std::int64_t>(&data_);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto whole = integer()) return static_cast<double>(*whole);
  const auto* found = std::get_if<double>(&data_);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::string_view Value::text() const {
  const auto* found = std::get_if<std::string>(&data_);
  return found != nullptr ? std::string_view(*found) : std::string_view();
}

const Value::Items& Value::items() const {
  static const Items none;
  const auto* found = std::get_if<Items>(&data_);
  return found != nullptr ? *found : none;
}

const Value::Members& Value::members() const {
  static const Members none;
  const auto* found = std::get_if<Members>(&data_);
  return found != nullptr ? *found : none;
}

std::size_t Value::size() const { return is_array() ? items().size() : members().size(); }

const Value& Value::operator[](std::string_view name) const {
  static const Value none;
  const auto found = members().find(name);
  return found == members().end() ? none : found->second;
}

const Value& Value::at(Path path) const {
  const Value* value = this;
  for (const std::string_view name : path) value = &(*value)[name];
  return *value;
}

bool Value::contains(std::string_view name) const { return members().contains(name); }

Value& Value::member(std::string_view name) {
  if (!is_object()) data_ = Members();
  auto& all = *std::get_if<Members>(&data_);
  const auto found = all.find(name);
  return found != all.end() ? found->second : all[std::string(name)];
}

void Value::set(Path path, Value value) {
  Value* place = this;
  for (const std::string_view name : path) place = &place->member(name);
  *place = std::move(value);
}

bool Value::erase(Path path) {
  if (path.size() == 0) return false;
  Value* place = this;
  for (const std::string_view* name = path.begin(); name + 1 != path.end(); ++name) {
    // Checked first, because member() would create it.
    if (!place->contains(*name)) return false;
    place = &place->member(*name);
  }
  auto* all = std::get_if<Members>(&place->data_);
  const auto found = all != nullptr ? all->find(*(path.end() - 1)) : Members::iterator();
  if (all == nullptr || found == all->end()) return false;
  all->erase(found);
  return true;
}

Value::Items Value::take_items(std::string_view name) && {
  auto* all = std::get_if<Members>(&data_);
  if (all == nullptr) return {};
  const auto found = all->find(name);
  auto* taken = found != all->end() ? std::get_if<Items>(&found->second.data_) : nullptr;
  return taken != nullptr ? std::move(*taken) : Items();
}

void Value::append(Value value) {
  if (!is_array()) data_ = Items();
  std::get_if<Items>(&data_)->push_back(std::move(value));
}

void Value::merge(const Value& patch) {
  if (!patch.is_object()) {
    *this = Value(patch);
    return;
  }
  if (!is_object()) data_ = Members();
  for (const auto& [name, change] : patch.members()) {
    if (change.is_null()) {
      std::get_if<Members>(&data_)->erase(name);
    } else {
      member(name).merge(change);
    }
  }
}

std::string Value::to_text() const {
  std::string out;
  write(out);
  return out;
}

void Value::write(std::string& out) const {
  if (is_null()) {
    out += "null";
  } else if (const auto flag = boolean()) {
    out += *flag ? "true" : "false";
  } else if (const auto whole = integer()) {
    append_number(out, *whole);
  } else if (const auto real = number()) {
    // JSON has no NaN and no infinity.
    append_number(out, std::isfinite(*real) ? *real : 0.0);
  } else if (is_string()) {
    json::append_quoted(out, text());
  } else if (is_array()) {
    char before = '[';
    for (const Value& item : items()) {
      out += std::exchange(before, ',');
      item.write(out);
    }
    out += before == '[' ? "[]" : "]";
  } else {
    char before = '{';
    for (const auto& [name, value] : members()) {
      out += std::exchange(before, ',');
      json::append_quoted(out, name);
      out += ':';
      value.write(out);
    }
    out += before == '{' ? "{}" : "}";
  }
}

bool operator==(const Value& left, const Value& right) {
  if (left.data_.index() != right.data_.index()) {
    const auto number = left.number();
    return number && number == right.number();
  }
  return left.data_ == right.data_;
}

}  // namespace sightline::object
