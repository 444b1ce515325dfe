// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/methods.h"

#include <algorithm>
#include <array>

#include "router/prompt/template/python/format.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"
#include "router/prompt/template/python/text.h"

namespace sightline::python {
namespace {

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

// The object and the arguments of a method, and the limit of its work.
struct Call {
  const Value& self;
  std::string_view name;
  const Arguments& arguments;
  Meter& meter;

  [[nodiscard]] std::string_view text() const { return *self.as_text(); }
  [[nodiscard]] Value part(std::string_view view) const { return Value::slice_of(self, view); }
};
using Method = Result<Value> (*)(const Call& call);
struct NamedMethod {
  std::string_view name;
  Method run;
};

// Returns an argument that must be a text. Returns nothing if it is absent or `None`.
Result<std::optional<std::string_view>> text_or_none(const Call& call, const Value* value) {
  if (value == nullptr || value->is_none()) return std::optional<std::string_view>();
  if (const auto text = value->as_text()) return std::optional<std::string_view>(*text);
  return type_error(*value, std::string(call.name) + " arg must be None or str, not " +
                                std::string(value->type_name()));
}

Result<std::string_view> text_argument(const Call& call, const Value& value) {
  if (const auto text = value.as_text()) return *text;
  return type_error(value, std::string(call.name) + "() argument must be str, not " +
                               std::string(value.type_name()));
}

Result<std::int64_t> integer_argument(const Value* value, std::int64_t fallback) {
  if (value == nullptr) return fallback;
  if (const auto integer = value->as_integer()) return *integer;
  return type_error(*value, "'" + std::string(value->type_name()) +
                                "' object cannot be interpreted as an integer");
}

Result<Value> run_strip(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"chars"}, 0));
  const auto characters = SL_TRY(text_or_none(call, bound[0]));
  const Side side = call.name == "lstrip"   ? Side::Left
                    : call.name == "rstrip" ? Side::Right
                                            : Side::Both;
  return call.part(strip(call.text(), side, characters));
}

Value list_of_parts(const Call& call, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(call.part(part));
  return Value::list(std::move(items));
}

Result<Value> run_split(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"sep", "maxsplit"}, 0));
  const auto separator = SL_TRY(text_or_none(call, bound[0]));
  const std::int64_t splits_max = SL_TRY(integer_argument(bound[1], -1));
  if (separator && separator->empty()) return invalid("empty separator");
  // Each part becomes a value. The length of the text limits their number before they are created.
  if (!call.meter.spend(1 + call.text().size() / 4)) return Value();
  const auto cut = call.name == "split" ? split : split_right;
  return list_of_parts(call, cut(call.text(), separator, splits_max));
}

Result<Value> run_splitlines(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"keepends"}, 0));
  // The charge is the same as for split().
  if (!call.meter.spend(1 + call.text().size() / 4)) return Value();
  return list_of_parts(call, split_lines(call.text(), bound[0] != nullptr && bound[0]->is_true()));
}

Result<Value> run_partition(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"sep"}, 1));
  const std::string_view separator = SL_TRY(text_argument(call, *bound[0]));
  if (separator.empty()) return invalid("empty separator");
  const std::string_view text = call.text();
  const bool is_left = call.name == "partition";
  const std::size_t at = is_left ? text.find(separator) : text.rfind(separator);
  // Without the separator, the whole text is the first part, or the last one for rpartition.
  std::vector<std::string_view> parts{text, {}, {}};
  if (at != std::string_view::npos) {
    parts = {text.substr(0, at), text.substr(at, separator.size()),
             text.substr(at + separator.size())};
  } else if (!is_left) {
    std::swap(parts[0], parts[2]);
  }
  std::vector<Value> items;
  for (const std::string_view part : parts) items.push_back(Value::text(std::string(part)));
  return Value::list(std::move(items), SequenceKind::Tuple);
}

// startswith and endswith also accept a tuple of candidates.
Result<Value> run_affix_test(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"prefix", "start", "end"}, 1));
  Slice part{SL_TRY(integer_argument(bound[1], 0)), {}, {}};
  if (bound[2] != nullptr) part.stop = SL_TRY(integer_argument(bound[2], 0));
  const Value tested = SL_TRY(slice(call.self, part, call.meter));
  const std::string_view text = *tested.as_text();
  const auto matches = [&](std::string_view affix) {
    return call.name == "startswith" ? text.starts_with(affix) : text.ends_with(affix);
  };
  const Value& wanted = *bound[0];
  if (const auto affix = wanted.as_text()) return Value::boolean(matches(*affix));
  const Sequence* tuple = wanted.get_if<Sequence>();
  if (tuple == nullptr || tuple->kind != SequenceKind::Tuple) {
    return type_error(wanted, std::string(call.name) +
                                  " first arg must be str or a tuple of str, not " +
                                  std::string(wanted.type_name()));
  }
  for (const Value& item : *tuple->items) {
    if (matches(SL_TRY(text_argument(call, item)))) return Value::boolean(true);
  }
  return Value::boolean(false);
}

Result<Value> run_replace(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"old", "new", "count"}, 2));
  const std::string_view from = SL_TRY(text_argument(call, *bound[0]));
  const std::string_view to = SL_TRY(text_argument(call, *bound[1]));
  const std::int64_t count = SL_TRY(integer_argument(bound[2], -1));
  const std::string_view text = call.text();
  const std::size_t hits = count_of(text, from);
  const std::size_t used = count < 0 ? hits : std::min(hits, static_cast<std::size_t>(count));
  // The result is charged before it is built. A short text with many hits may become huge.
  if (!call.meter.spend(used) || !call.meter.spend_text(text.size() + used * to.size())) {
    return Value();
  }
  if (used == 0) return call.self;
  return Value::text(replace(text, from, to, count));
}

Result<Value> run_case(const Call& call) {
  SL_TRY(bind(call.name, call.arguments, {}, 0));
  if (!call.meter.spend_text(call.text().size())) return Value();
  if (call.name == "upper") return Value::text(to_upper(call.text()));
  if (call.name == "lower") return Value::text(to_lower(call.text()));
  if (call.name == "title") return Value::text(title(call.text()));
  return Value::text(capitalize(call.text()));
}

Result<Value> run_find(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"sub"}, 1));
  const std::string_view part = SL_TRY(text_argument(call, *bound[0]));
  const std::string_view text = call.text();
  call.meter.spend_text(text.size());
  const bool from_left = call.name == "find" || call.name == "index";
  const std::size_t at = from_left ? text.find(part) : text.rfind(part);
  if (at != std::string_view::npos) {
    // Python counts in characters.
    return Value::integer(static_cast<std::int64_t>(length_of(text.substr(0, at))));
  }
  if (call.name.ends_with("index")) return invalid("substring not found");
  return Value::integer(-1);
}

Result<Value> run_count(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"sub"}, 1));
  const std::string_view part = SL_TRY(text_argument(call, *bound[0]));
  call.meter.spend_text(call.text().size());
  return Value::integer(static_cast<std::int64_t>(count_of(call.text(), part)));
}

Result<Value> run_join(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"iterable"}, 1));
  const std::vector<Value> items = SL_TRY(items_of(*bound[0], call.meter));
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto text = items[i].as_text();
    if (!text) {
      return invalid("sequence item " + std::to_string(i) + ": expected str instance, " +
                     std::string(items[i].type_name()) + " found");
    }
    if (!call.meter.spend_text(call.text().size() + text->size())) return Value();
    if (i > 0) out += call.text();
    out += *text;
  }
  return Value::text(std::move(out));
}

Result<Value> run_character_test(const Call& call) {
  SL_TRY(bind(call.name, call.arguments, {}, 0));
  const std::string_view text = call.text();
  call.meter.spend_text(text.size());
  if (call.name == "isupper") return Value::boolean(is_upper(text));
  if (call.name == "islower") return Value::boolean(is_lower(text));
  static constexpr std::array<std::pair<std::string_view, CharacterClass>, 6> kClasses{{
      {"isalpha", CharacterClass::Alphabetic},
      {"isdigit", CharacterClass::Digit},
      {"isdecimal", CharacterClass::Decimal},
      {"isnumeric", CharacterClass::Numeric},
      {"isalnum", CharacterClass::Alphanumeric},
      {"isspace", CharacterClass::Space},
  }};
  const auto* found = std::find_if(kClasses.begin(), kClasses.end(),
                                   [&](const auto& entry) { return entry.first == call.name; });
  return Value::boolean(consists_of(text, found->second));
}

Result<Value> run_remove_affix(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"affix"}, 1));
  const std::string_view affix = SL_TRY(text_argument(call, *bound[0]));
  std::string_view text = call.text();
  if (call.name == "removeprefix") {
    if (text.starts_with(affix)) text.remove_prefix(affix.size());
  } else if (text.ends_with(affix)) {
    text.remove_suffix(affix.size());
  }
  return call.part(text);
}

Result<Value> run_format(const Call& call) {
  return format_braces(call.text(), call.arguments, call.meter);
}

Result<Value> run_items(const Call& call) {
  SL_TRY(bind(call.name, call.arguments, {}, 0));
  const Dict& dict = *call.self.as_dict();
  std::vector<Value> items;
  if (!call.meter.spend(dict.size())) return Value();
  items.reserve(dict.size());
  for (const auto& [key, value] : dict.entries()) {
    if (call.name == "items") {
      items.push_back(Value::list({key, value}, SequenceKind::Tuple));
    } else {
      items.push_back(call.name == "keys" ? key : value);
    }
  }
  return Value::list(std::move(items), SequenceKind::View);
}

Result<Value> run_get(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"key", "default"}, 1));
  if (!is_hashable(*bound[0])) {
    return invalid("unhashable type: '" + std::string(bound[0]->type_name()) + "'");
  }
  if (const Value* found = call.self.as_dict()->find(*bound[0])) return *found;
  return bound[1] == nullptr ? Value() : *bound[1];
}

// Values are immutable. A copy is the value itself.
Result<Value> run_copy(const Call& call) {
  SL_TRY(bind(call.name, call.arguments, {}, 0));
  return call.self;
}

Result<Value> run_list_search(const Call& call) {
  const auto bound = SL_TRY(bind(call.name, call.arguments, {"value"}, 1));
  std::int64_t count = 0;
  std::int64_t index = 0;
  const auto items = *call.self.as_items();
  // equals() charges each comparison.
  for (const Value& item : items) {
    if (equals(item, *bound[0], call.meter)) {
      if (call.name == "index") return Value::integer(index);
      ++count;
    }
    ++index;
  }
  if (call.name == "count") return Value::integer(count);
  return invalid(repr_of(*bound[0], call.meter) + " is not in list");
}

constexpr std::array<NamedMethod, 32> kTextMethods{{
    {"capitalize", run_case},
    {"count", run_count},
    {"endswith", run_affix_test},
    {"find", run_find},
    {"format", run_format},
    {"index", run_find},
    {"isalnum", run_character_test},
    {"isalpha", run_character_test},
    {"isdecimal", run_character_test},
    {"isdigit", run_character_test},
    {"islower", run_character_test},
    {"isnumeric", run_character_test},
    {"isspace", run_character_test},
    {"isupper", run_character_test},
    {"join", run_join},
    {"lower", run_case},
    {"lstrip", run_strip},
    {"partition", run_partition},
    {"removeprefix", run_remove_affix},
    {"removesuffix", run_remove_affix},
    {"replace", run_replace},
    {"rfind", run_find},
    {"rindex", run_find},
    {"rpartition", run_partition},
    {"rsplit", run_split},
    {"rstrip", run_strip},
    {"split", run_split},
    {"splitlines", run_splitlines},
    {"startswith", run_affix_test},
    {"strip", run_strip},
    {"title", run_case},
    {"upper", run_case},
}};
constexpr std::array<NamedMethod, 5> kDictMethods{{
    {"copy", run_copy},
    {"get", run_get},
    {"items", run_items},
    {"keys", run_items},
    {"values", run_items},
}};
// A tuple has the first two methods.
constexpr std::size_t kTupleMethods = 2;
constexpr std::array<NamedMethod, 3> kListMethods{{
    {"count", run_list_search},
    {"index", run_list_search},
    {"copy", run_copy},
}};

const NamedMethod* lookup(const Value& self, std::string_view name) {
  std::span<const NamedMethod> methods;
  if (self.as_text()) {
    methods = kTextMethods;
  } else if (self.as_dict() != nullptr) {
    methods = kDictMethods;
  } else if (const Sequence* sequence = self.get_if<Sequence>();
             sequence != nullptr && sequence->kind <= SequenceKind::Tuple) {
    methods = kListMethods;
    if (sequence->kind == SequenceKind::Tuple) methods = methods.first(kTupleMethods);
  }
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const NamedMethod& method) { return method.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

}  // namespace

Result<std::vector<const Value*>> bind(std::string_view function, const Arguments& arguments,
                                       std::initializer_list<std::string_view> parameters,
                                       std::size_t required_count) {
  const std::string called = std::string(function) + "()";
  std::vector<const Value*> bound(parameters.size(), nullptr);
  if (arguments.positional.size() > parameters.size()) {
    return invalid(called + " takes at most " + std::to_string(parameters.size()) + " arguments (" +
                   std::to_string(arguments.positional.size()) + " given)");
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto* at = std::find(parameters.begin(), parameters.end(), name);
    if (at == parameters.end()) {
      return invalid(called + " got an unexpected keyword argument '" + std::string(name) + "'");
    }
    const Value*& slot = bound[static_cast<std::size_t>(at - parameters.begin())];
    if (slot != nullptr) {
      return invalid(called + " got multiple values for argument '" + std::string(name) + "'");
    }
    slot = &value;
  }
  for (std::size_t i = 0; i < required_count; ++i) {
    if (bound[i] == nullptr) {
      return invalid(called + " missing required argument '" + std::string(parameters.begin()[i]) +
                     "'");
    }
  }
  return bound;
}

std::optional<std::string_view> find_method(const Value& self, std::string_view name) {
  const NamedMethod* method = lookup(self, name);
  if (method == nullptr) return std::nullopt;
  return method->name;
}

Result<Value> call_method(const BoundMethod& method, const Arguments& arguments, Meter& meter) {
  const NamedMethod* found = lookup(method.self, method.name);
  SL_CHECK(found != nullptr);
  return found->run(Call{method.self, found->name, arguments, meter});
}

}  // namespace sightline::python
