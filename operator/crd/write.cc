// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/crd/write.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>

#include "common/base/json.h"

#include "operator/crd/describe.h"

namespace sightline::crd {
namespace {

template <class Struct>
std::string object_of(const Struct& value);

// An empty result means that the member is left out.
std::string json_of(const std::string& text) { return text.empty() ? "" : json::to_quoted(text); }
std::string json_of(bool flag) { return flag ? "true" : "false"; }
std::string json_of(std::int64_t number) { return std::to_string(number); }
std::string json_of(const Opaque& opaque) { return opaque.json; }
template <class Enum>
requires std::is_enum_v<Enum> std::string json_of(Enum value) {
  return json::to_quoted(word_of(value));
}
template <class Struct>
requires std::is_class_v<Struct> std::string json_of(const Struct& value) {
  return object_of(value);
}
template <class Value>
std::string json_of(const std::optional<Value>& value) {
  return value ? json_of(*value) : "";
}
template <class Element>
std::string json_of(const std::vector<Element>& values) {
  std::string out;
  for (const Element& value : values) out += (out.empty() ? "[" : ",") + json_of(value);
  return out.empty() ? "" : out + "]";
}
// An empty list of modalities is not the same as a missing one, which means the default.
std::string json_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "[" : ",") + json::to_quoted(word);
  return out.empty() ? "[]" : out + "]";
}
template <class Element>
std::string json_of(const std::map<std::string, Element>& values) {
  std::string out;
  for (const auto& [key, value] : values) {
    std::string text = json_of(value);
    // A key must stay, even with an empty value.
    if (text.empty()) text = R"("")";
    out += (out.empty() ? "{" : ",") + json::to_quoted(key) + ":" + text;
  }
  return out.empty() ? "" : out + "}";
}

class Writing {
 public:
  template <class Member>
  void operator()(std::string_view name, const Member& member) {
    const std::string text = json_of(member);
    if (text.empty()) return;
    out_ += (out_.size() > 1 ? "," : "") + json::to_quoted(name) + ":" + text;
  }
  [[nodiscard]] std::string take() { return out_ + "}"; }

 private:
  std::string out_ = "{";
};

template <class Struct>
std::string object_of(const Struct& value) {
  Writing members;
  describe(members, value);
  return members.take();
}

class Naming {
 public:
  Naming(std::string path, std::vector<std::string>& names)
      : path_(std::move(path)), names_(names) {}

  template <class Member>
  void operator()(std::string_view name, const Member& /*member*/) {
    const std::string path = path_ + "." + std::string(name);
    names_.push_back(path);
    go_into<Member>(path);
  }

 private:
  template <class Member>
  struct Inner {
    using Type = Member;
    static constexpr std::string_view kSuffix = "";
  };
  template <class Value>
  struct Inner<std::optional<Value>> {
    using Type = Value;
    static constexpr std::string_view kSuffix = "";
  };
  template <class Element>
  struct Inner<std::vector<Element>> {
    using Type = Element;
    static constexpr std::string_view kSuffix = "[]";
  };

  template <class Member>
  void go_into(const std::string& path) {
    using Type = typename Inner<Member>::Type;
    // Only structs of the CRD have a describe().
    if constexpr (requires(Naming & inner, const Type& value) { describe(inner, value); }) {
      Naming inner(path + std::string(Inner<Member>::kSuffix), names_);
      const Type value{};
      describe(inner, value);
    }
  }

  std::string path_;
  std::vector<std::string>& names_;
};

}  // namespace

std::string spec_json(const Spec& spec) { return object_of(spec); }
std::string status_json(const Status& status) { return object_of(status); }

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  Naming spec("spec", names);
  const Spec any_spec;
  describe(spec, any_spec);
  Naming status("status", names);
  const Status any_status;
  describe(status, any_status);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sightline::crd
