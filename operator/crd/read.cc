// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/crd/read.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "operator/crd/describe.h"

namespace sightline::crd {
namespace {

// Reads the members of an object. Keeps the first wrong member as the error.
class Reading {
 public:
  Reading(json::Value object, std::string path, std::optional<Error>& error)
      : object_(object), path_(std::move(path)), error_(error) {}

  template <class Member>
  void operator()(std::string_view name, Member& member) {
    const auto found = object_.find(name);
    // null is the same as a missing member, which keeps its default.
    if (!found || found->is(json::Kind::Null)) return;
    read(*found, path_ + "." + std::string(name), member);
  }

 private:
  void refuse(const std::string& path, std::string_view must_be) {
    if (error_) return;
    error_ =
        client_error(ErrorCode::InvalidArgument, path + " must be " + std::string(must_be), path);
  }

  void read(json::Value value, const std::string& path, std::string& member) {
    const auto text = value.string();
    if (!text) return refuse(path, "text");
    member = *text;
  }
  void read(json::Value value, const std::string& path, bool& member) {
    const auto flag = value.boolean();
    if (!flag) return refuse(path, "true or false");
    member = *flag;
  }
  void read(json::Value value, const std::string& path, std::int64_t& member) {
    const auto number = value.integer();
    if (!number) return refuse(path, "a whole number");
    member = *number;
  }
  void read(json::Value value, const std::string& path, Opaque& member) {
    if (!value.is(json::Kind::Object)) return refuse(path, "an object");
    member.json = value.raw();
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(json::Value value, const std::string& path, Enum& member) {
    const auto& words = kWords<Enum>;
    const auto word = std::find(words.begin(), words.end(), value.string().value_or(""));
    if (word == words.end()) return refuse(path, "one of its values");
    // kWords has the order of the enumerators.
    member = static_cast<Enum>(word - words.begin());
  }
  template <class Value>
  void read(json::Value value, const std::string& path, std::optional<Value>& member) {
    read(value, path, member.emplace());
  }
  template <class Element>
  void read(json::Value value, const std::string& path, std::vector<Element>& member) {
    if (!value.is(json::Kind::Array)) return refuse(path, "a list");
    member.clear();
    for (const json::Value element : value) {
      const std::string place = path + "[" + std::to_string(member.size()) + "]";
      read(element, place, member.emplace_back());
    }
  }
  template <class Element>
  void read(json::Value value, const std::string& path, std::map<std::string, Element>& member) {
    if (!value.is(json::Kind::Object)) return refuse(path, "an object");
    member.clear();
    for (const json::Value element : value) {
      const std::string key(element.name());
      read_element(element, path + "." + key, member[key]);
    }
  }
  // A quantity may be a number.
  void read_element(json::Value value, const std::string& path, std::string& member) {
    if (value.is(json::Kind::Number)) {
      member = value.raw();
    } else {
      read(value, path, member);
    }
  }
  void read_element(json::Value value, const std::string& path, std::int64_t& member) {
    read(value, path, member);
  }
  template <class Struct>
  requires std::is_class_v<Struct>
  void read(json::Value value, const std::string& path, Struct& member) {
    if (!value.is(json::Kind::Object)) return refuse(path, "an object");
    Reading members(value, path, error_);
    describe(members, member);
  }

  json::Value object_;
  std::string path_;
  std::optional<Error>& error_;
};

template <class Part>
Result<Part> read_part(json::Value object, std::string_view name, bool is_needed) {
  const auto found = object.find(name);
  Part part;
  if (!found || found->is(json::Kind::Null)) {
    if (!is_needed) return part;
    return client_error(ErrorCode::InvalidArgument, std::string(name) + " is missing",
                        std::string(name));
  }
  std::optional<Error> error;
  if (!found->is(json::Kind::Object)) {
    error = client_error(ErrorCode::InvalidArgument, std::string(name) + " must be an object",
                         std::string(name));
  } else {
    Reading members(*found, std::string(name), error);
    describe(members, part);
  }
  if (error) return std::move(*error);
  return part;
}

}  // namespace

Result<Spec> read_spec(json::Value object) { return read_part<Spec>(object, "spec", true); }
Result<Status> read_status(json::Value object) {
  return read_part<Status>(object, "status", false);
}

}  // namespace sightline::crd
