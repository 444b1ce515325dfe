// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>

#include "router/prompt/template/python/methods.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"
#include "router/prompt/template/python/text.h"

namespace sightline::python {
namespace {

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

std::string quoted_type(const Value& value) { return "'" + std::string(value.type_name()) + "'"; }

Value no_attribute(const Value& value, std::string_view name) {
  if (const Undefined* undefined = value.get_if<Undefined>()) {
    return Value::undefined(*undefined->reason);
  }
  return Value::undefined("'" + std::string(value.type_name()) + " object' has no attribute '" +
                          std::string(name) + "'");
}

Value no_element(const Value& value, const Value& key) {
  // The key comes from the request, and may be a large text. The meter limits the length of the
  // message.
  Meter meter(1000);
  return Value::undefined(std::string(value.type_name()) + " object has no element " +
                          repr_of(key, meter));
}

std::optional<Value> method_of(const Value& value, std::string_view name) {
  const auto known = find_method(value, name);
  if (!known) return std::nullopt;
  return Value::method(BoundMethod{value, *known});
}

// Returns the item at an index. A negative index counts from the end.
std::optional<Value> element_at(const Value& value, std::int64_t index) {
  if (const Sequence* sequence = value.get_if<Sequence>()) {
    // Only lists and tuples have an index.
    if (sequence->kind > SequenceKind::Tuple) return std::nullopt;
    const auto size = static_cast<std::int64_t>(sequence->items->size());
    if (index < 0) index += size;
    if (index < 0 || index >= size) return std::nullopt;
    return (*sequence->items)[static_cast<std::size_t>(index)];
  }
  const auto text = value.as_text();
  if (!text) return std::nullopt;
  const auto size = static_cast<std::int64_t>(length_of(*text));
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  // Only the offset of the wanted character is computed, without a list of all characters.
  const std::size_t begin = offset_of(*text, static_cast<std::size_t>(index));
  std::size_t end = begin;
  next_code_point(*text, end);
  return Value::slice_of(value, text->substr(begin, end - begin));
}

struct SliceRange {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
};

// Follows Python's slice.indices().
SliceRange clamp(const Slice& bounds, std::int64_t size) {
  SliceRange range;
  range.step = bounds.step.value_or(1);
  const bool is_back = range.step < 0;
  const std::int64_t low = is_back ? -1 : 0;
  const std::int64_t high = is_back ? size - 1 : size;
  const auto clamped = [&](std::int64_t index) {
    // Prevents an overflow in the next line.
    if (index < 0) index = index < -size ? -1 - size : index;
    if (index < 0) index += size;
    return std::clamp(index, low, high);
  };
  range.start = bounds.start ? clamped(*bounds.start) : (is_back ? high : low);
  range.stop = bounds.stop ? clamped(*bounds.stop) : (is_back ? low : high);
  return range;
}

// Calls `take` for each index. The next index is computed only if it is within the range, because a
// huge step would overflow.
template <class Take>
void for_each_index(const SliceRange& range, Take take) {
  if (range.step > 0) {
    for (std::int64_t i = range.start; i < range.stop;) {
      take(i);
      if (range.step >= range.stop - i) break;
      i += range.step;
    }
    return;
  }
  for (std::int64_t i = range.start; i > range.stop;) {
    take(i);
    if (range.step <= range.stop - i) break;
    i += range.step;
  }
}

Value slice_text(const Value& value, const Slice& bounds, Meter& meter) {
  const std::string_view text = *value.as_text();
  meter.spend_text(text.size());
  const SliceRange range = clamp(bounds, static_cast<std::int64_t>(length_of(text)));
  if (range.step == 1) {
    const std::size_t begin = offset_of(text, static_cast<std::size_t>(range.start));
    if (range.stop <= range.start) return Value::slice_of(value, text.substr(begin, 0));
    const std::string_view rest = text.substr(begin);
    return Value::slice_of(
        value, rest.substr(0, offset_of(rest, static_cast<std::size_t>(range.stop - range.start))));
  }
  // Another step needs the characters by their index.
  std::vector<std::string_view> characters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    next_code_point(text, at);
    characters.push_back(text.substr(begin, at - begin));
  }
  std::string out;
  for_each_index(range, [&](std::int64_t i) { out += characters[static_cast<std::size_t>(i)]; });
  return Value::text(std::move(out));
}

}  // namespace

Result<Value> attribute_of(const Value& value, std::string_view name) {
  if (Foreign* object = value.as_foreign()) return object->attribute(name);
  if (const Undefined* undefined = value.get_if<Undefined>()) return invalid(*undefined->reason);
  if (auto method = method_of(value, name)) return *std::move(method);
  if (const Dict* dict = value.as_dict()) {
    if (const Value* item = dict->find(name)) return *item;
  }
  return no_attribute(value, name);
}

Result<Value> item_of(const Value& value, const Value& key) {
  if (const Undefined* undefined = value.get_if<Undefined>()) return invalid(*undefined->reason);
  // An unhashable key cannot be in the dict.
  if (const Dict* dict = value.as_dict(); dict != nullptr && is_hashable(key)) {
    if (const Value* item = dict->find(key)) return *item;
  } else if (const auto index = key.as_integer()) {
    if (auto element = element_at(value, *index)) return *std::move(element);
  }
  const auto name = key.as_text();
  if (!name) return no_element(value, key);
  if (Foreign* object = value.as_foreign()) return object->attribute(*name);
  if (auto method = method_of(value, *name)) return *std::move(method);
  return no_attribute(value, *name);
}

Result<Value> slice(const Value& value, const Slice& bounds, Meter& meter) {
  if (bounds.step == 0) return invalid("slice step cannot be zero");
  if (const Undefined* undefined = value.get_if<Undefined>()) return invalid(*undefined->reason);
  if (value.as_text()) return slice_text(value, bounds, meter);
  const Sequence* sequence = value.get_if<Sequence>();
  // Python uses the slice as a key here.
  if (value.as_dict() != nullptr) return invalid("unhashable type: 'slice'");
  if (sequence == nullptr || sequence->kind > SequenceKind::Tuple) {
    return invalid(quoted_type(value) + " object is not subscriptable");
  }
  std::vector<Value> items;
  const SliceRange range = clamp(bounds, static_cast<std::int64_t>(sequence->items->size()));
  for_each_index(range, [&](std::int64_t i) {
    if (meter.spend()) items.push_back((*sequence->items)[static_cast<std::size_t>(i)]);
  });
  return Value::list(std::move(items), sequence->kind);
}

Result<std::int64_t> length_of(const Value& value) {
  if (const auto text = value.as_text()) return static_cast<std::int64_t>(length_of(*text));
  if (const Dict* dict = value.as_dict()) return static_cast<std::int64_t>(dict->size());
  if (value.is_undefined()) return std::int64_t{0};
  const Sequence* sequence = value.get_if<Sequence>();
  if (sequence != nullptr && sequence->kind != SequenceKind::Generator) {
    return static_cast<std::int64_t>(sequence->items->size());
  }
  return invalid("object of type " + quoted_type(value) + " has no len()");
}

Result<std::vector<Value>> items_of(const Value& value, Meter& meter) {
  std::vector<Value> items;
  if (const auto list = value.as_items()) {
    if (meter.spend(list->size())) items.assign(list->begin(), list->end());
  } else if (const Dict* dict = value.as_dict()) {
    if (!meter.spend(dict->size())) return items;
    items.reserve(dict->size());
    for (const auto& [key, member] : dict->entries()) items.push_back(key);
  } else if (const auto text = value.as_text()) {
    for (std::size_t at = 0; at < text->size() && meter.spend();) {
      const std::size_t begin = at;
      next_code_point(*text, at);
      items.push_back(Value::slice_of(value, text->substr(begin, at - begin)));
    }
  } else if (!value.is_undefined()) {
    return invalid(quoted_type(value) + " object is not iterable");
  }
  return items;
}

}  // namespace sightline::python
