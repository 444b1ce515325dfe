// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <charconv>

#include "router/prompt/template/filters/filters.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"
#include "router/prompt/template/python/text.h"

namespace sightline::filters {
namespace {

using python::Arguments;
using python::SequenceKind;
using python::Value;

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

bool flag(const Value* value, bool fallback) {
  return value == nullptr ? fallback : value->is_true();
}

// Returns the part of an item at a path, for example attribute="a.b.0". Without an attribute, or
// with `None`, it returns the item.
Result<Value> part_of(const Value& item, const Value* attribute, const Value* fallback) {
  if (attribute == nullptr || attribute->is_none()) return item;
  if (attribute->as_integer()) return python::item_of(item, *attribute);
  const auto path = attribute->as_text();
  if (!path) return invalid("attribute must be a text or an integer");
  Value value = item;
  for (const std::string_view step : python::split(*path, ".", -1)) {
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
    const bool is_index = error == std::errc{} && end == step.data() + step.size() && index >= 0;
    value = SL_TRY(
        python::item_of(value, is_index ? Value::integer(index) : Value::text(std::string(step))));
    // The default replaces a missing part at every step of the path, as in Jinja2.
    const bool is_missing = value.is_undefined() && fallback != nullptr && !fallback->is_none();
    if (is_missing) value = *fallback;
  }
  return value;
}

Value folded(const Value& value, bool is_case_sensitive) {
  const auto text = value.as_text();
  // Without case_sensitive, Jinja2 compares texts in lower case.
  if (is_case_sensitive || !text) return value;
  return Value::text(python::to_lower(*text));
}

struct Keyed {
  Value key;
  Value item;
};

Result<std::vector<Keyed>> keyed_items(const Application& filter, const Value* attribute,
                                       bool is_case_sensitive) {
  const auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) {
    const Value key = SL_TRY(part_of(item, attribute, nullptr));
    keyed.push_back({folded(key, is_case_sensitive), item});
  }
  return keyed;
}

// Sorts in ascending order, or in descending order as Python's sort(reverse=True). The sort is
// stable in both cases: equal items keep their order.
Result<Done> sort_by_key(std::vector<Keyed>& keyed, bool is_reverse, python::Meter& meter) {
  std::optional<Error> failure;
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    // After a failure the order does not matter. The comparison must still be consistent.
    if (failure || meter.is_exhausted()) return false;
    auto result =
        is_reverse ? python::less(b.key, a.key, meter) : python::less(a.key, b.key, meter);
    if (!result.ok()) failure = std::move(result).error();
    return !failure && *result;
  });
  if (failure) return *std::move(failure);
  return Done{};
}

Result<Value> run_length(const Application& filter) {
  return Value::integer(SL_TRY(python::length_of(filter.value)));
}

Result<Value> run_list(const Application& filter) {
  return Value::list(SL_TRY(python::items_of(filter.value, filter.meter)));
}

Result<Value> run_first(const Application& filter) {
  // Reads the first item without a copy of all items.
  if (filter.value.as_items() && !filter.value.as_items()->empty()) {
    return filter.value.as_items()->front();
  }
  const auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  if (items.empty()) return Value::undefined("No first item, sequence was empty.");
  return items.front();
}

Result<Value> run_last(const Application& filter) {
  const auto* sequence = filter.value.get_if<python::Sequence>();
  // reversed() of a generator raises an exception in Python.
  if (sequence != nullptr && sequence->kind == SequenceKind::Generator) {
    return invalid("'generator' object is not reversible");
  }
  const auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  if (items.empty()) return Value::undefined("No last item, sequence was empty.");
  return items.back();
}

Result<Value> run_reverse(const Application& filter) {
  auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  std::reverse(items.begin(), items.end());
  if (!filter.value.as_text()) return Value::list(std::move(items), SequenceKind::Generator);
  std::string out;
  for (const Value& character : items) out += *character.as_text();
  return Value::text(std::move(out));
}

Result<Value> run_join(const Application& filter) {
  const auto bound = SL_TRY(python::bind("join", filter.arguments, {"d", "attribute"}, 0));
  const std::string separator = bound[0] == nullptr ? "" : python::str_of(*bound[0], filter.meter);
  const auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += separator;
    const Value part = SL_TRY(part_of(items[i], bound[1], nullptr));
    if (!filter.meter.spend_text(separator.size())) return Value();
    python::append_str(out, part, filter.meter);
  }
  return Value::text(std::move(out));
}

Result<Value> run_items(const Application& filter) {
  if (filter.value.is_undefined()) return Value::list({}, SequenceKind::Generator);
  const auto* dict = filter.value.as_dict();
  if (dict == nullptr) return invalid("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  if (!filter.meter.spend(dict->size())) return Value();
  for (const auto& [key, value] : dict->entries()) {
    // Each item is a pair of key and value, as in Python.
    pairs.push_back(Value::list({key, value}, SequenceKind::Tuple));
  }
  return Value::list(std::move(pairs), SequenceKind::Generator);
}

Result<Value> run_dictsort(const Application& filter) {
  const auto bound =
      SL_TRY(python::bind("dictsort", filter.arguments, {"case_sensitive", "by", "reverse"}, 0));
  const auto* dict = filter.value.as_dict();
  if (dict == nullptr) {
    return python::type_error(filter.value, "'" + std::string(filter.value.type_name()) +
                                                "' object has no attribute 'items'");
  }
  const std::string_view by = bound[1] == nullptr ? "key" : bound[1]->as_text().value_or("");
  if (by != "key" && by != "value")
    return invalid("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : dict->entries()) {
    keyed.push_back({folded(by == "key" ? key : value, flag(bound[0], false)),
                     Value::list({key, value}, SequenceKind::Tuple)});
  }
  SL_TRY(sort_by_key(keyed, flag(bound[2], false), filter.meter));
  std::vector<Value> pairs;
  for (Keyed& entry : keyed) pairs.push_back(std::move(entry.item));
  return Value::list(std::move(pairs));
}

// Returns the key for sorting. attribute="a,b.c" means several parts. The key is always a list of
// them.
Result<Value> sort_key_of(const Value& item, const Value* attribute, bool is_case_sensitive) {
  const auto paths = attribute == nullptr ? std::nullopt : attribute->as_text();
  std::vector<Value> parts;
  if (!paths) {
    parts.push_back(folded(SL_TRY(part_of(item, attribute, nullptr)), is_case_sensitive));
    return Value::list(std::move(parts));
  }
  for (const std::string_view path : python::split(*paths, ",", -1)) {
    const Value name = Value::text(std::string(path));
    parts.push_back(folded(SL_TRY(part_of(item, &name, nullptr)), is_case_sensitive));
  }
  return Value::list(std::move(parts));
}

Result<Value> run_sort(const Application& filter) {
  const auto bound =
      SL_TRY(python::bind("sort", filter.arguments, {"reverse", "case_sensitive", "attribute"}, 0));
  const auto given = SL_TRY(python::items_of(filter.value, filter.meter));
  std::vector<Keyed> keyed;
  keyed.reserve(given.size());
  for (const Value& item : given) {
    keyed.push_back({SL_TRY(sort_key_of(item, bound[2], flag(bound[1], false))), item});
  }
  SL_TRY(sort_by_key(keyed, flag(bound[0], false), filter.meter));
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return Value::list(std::move(items));
}

Result<Value> run_unique(const Application& filter) {
  const auto bound =
      SL_TRY(python::bind("unique", filter.arguments, {"case_sensitive", "attribute"}, 0));
  const auto keyed = SL_TRY(keyed_items(filter, bound[1], flag(bound[0], false)));
  // Values have no hash here, so the keys are searched one by one. The meter limits this work.
  std::vector<const Value*> seen;
  std::vector<Value> items;
  for (const Keyed& entry : keyed) {
    // Jinja2 collects the keys in a set, which needs hashable keys.
    if (!python::is_hashable(entry.key)) {
      return invalid("unhashable type: '" + std::string(entry.key.type_name()) + "'");
    }
    const bool is_known = std::any_of(seen.begin(), seen.end(), [&](const Value* key) {
      return python::equals(*key, entry.key, filter.meter);
    });
    if (is_known || filter.meter.is_exhausted()) continue;
    seen.push_back(&entry.key);
    items.push_back(entry.item);
  }
  return Value::list(std::move(items), SequenceKind::Generator);
}

Result<Value> run_extreme(const Application& filter) {
  const auto bound =
      SL_TRY(python::bind(filter.name, filter.arguments, {"case_sensitive", "attribute"}, 0));
  const auto keyed = SL_TRY(keyed_items(filter, bound[1], flag(bound[0], false)));
  if (keyed.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  // Of equal items the first one is the result, as in Python.
  const Keyed* best = &keyed.front();
  for (const Keyed& entry : std::span(keyed).subspan(1)) {
    const bool is_better = filter.name == "max"
                               ? SL_TRY(python::less(best->key, entry.key, filter.meter))
                               : SL_TRY(python::less(entry.key, best->key, filter.meter));
    if (is_better) best = &entry;
  }
  return best->item;
}

Result<Value> run_sum(const Application& filter) {
  const auto bound = SL_TRY(python::bind("sum", filter.arguments, {"attribute", "start"}, 0));
  Value total = bound[1] == nullptr ? Value::integer(0) : *bound[1];
  const auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  for (const Value& item : items) {
    const Value part = SL_TRY(part_of(item, bound[0], nullptr));
    // This addition has the rules of Python's "+". The sum of lists therefore needs a list as its
    // start.
    total = SL_TRY(python::arithmetic(python::Arithmetic::Add, total, part, filter.meter));
  }
  return total;
}

// Returns the arguments after the name in map("name", …) and select("name", …).
Arguments without_first(const Arguments& arguments, std::size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

Result<Value> run_map(const Application& filter) {
  // Jinja2 maps nothing if the value counts as false.
  if (!filter.value.is_true()) return Value::list({}, SequenceKind::Generator);
  const Arguments& arguments = filter.arguments;
  const auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  std::vector<Value> mapped;
  mapped.reserve(items.size());
  if (arguments.positional.empty()) {
    const auto bound = SL_TRY(python::bind("map", arguments, {"attribute", "default"}, 1));
    for (const Value& item : items) mapped.push_back(SL_TRY(part_of(item, bound[0], bound[1])));
    return Value::list(std::move(mapped), SequenceKind::Generator);
  }
  const auto name = arguments.positional.front().as_text();
  if (!name) return invalid("map requires a filter argument");
  const Arguments rest = without_first(arguments, 1);
  for (const Value& item : items) {
    if (!filter.meter.spend()) break;
    mapped.push_back(SL_TRY(apply_filter(Application{*name, item, rest, filter.meter})));
  }
  return Value::list(std::move(mapped), SequenceKind::Generator);
}

// select, reject, selectattr and rejectattr.
Result<Value> run_select(const Application& filter) {
  if (!filter.value.is_true()) return Value::list({}, SequenceKind::Generator);
  const auto& positional = filter.arguments.positional;
  const bool by_attribute = filter.name.ends_with("attr");
  const bool keeps = filter.name.starts_with("select");
  const std::size_t used = by_attribute ? 1 : 0;
  if (positional.size() < used) return invalid("Missing parameter for attribute name");
  std::optional<std::string_view> test;
  if (positional.size() > used) {
    test = positional[used].as_text();
    if (!test) return invalid("the test's name must be a text");
  }
  const Arguments rest = without_first(filter.arguments, used + (test ? 1 : 0));
  const auto items = SL_TRY(python::items_of(filter.value, filter.meter));
  std::vector<Value> kept;
  for (const Value& item : items) {
    if (!filter.meter.spend()) break;
    const Value part = SL_TRY(part_of(item, by_attribute ? &positional[0] : nullptr, nullptr));
    // Without a test, the truth of the part decides.
    const bool holds =
        test ? SL_TRY(apply_test(Application{*test, part, rest, filter.meter})) : part.is_true();
    if (holds == keeps) kept.push_back(item);
  }
  return Value::list(std::move(kept), SequenceKind::Generator);
}

constexpr NamedFilter kFilters[] = {
    {"count", run_length},      {"dictsort", run_dictsort}, {"first", run_first},
    {"items", run_items},       {"join", run_join},         {"last", run_last},
    {"length", run_length},     {"list", run_list},         {"map", run_map},
    {"max", run_extreme},       {"min", run_extreme},       {"reject", run_select},
    {"rejectattr", run_select}, {"reverse", run_reverse},   {"select", run_select},
    {"selectattr", run_select}, {"sort", run_sort},         {"sum", run_sum},
    {"unique", run_unique},
};

}  // namespace

std::span<const NamedFilter> sequence_filters() { return kFilters; }

}  // namespace sightline::filters
