// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/python_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>

#include "router/prompt/template/python/operators.h"

namespace sightline::python {
namespace {

// For up to this many entries a linear search is faster than the sorted index.
constexpr std::size_t kLinearEntriesMax = 8;

// The steps for comparing two keys. Keys are scalars or small tuples.
constexpr std::uint64_t kKeyStepsMax = 10'000;

bool same_key(const Value& a, const Value& b) {
  Meter meter(kKeyStepsMax);
  return equals(a, b, meter);
}

// Reads a JSON number as Python's json module does.
Value number_of(const json::Value& value) {
  if (const auto integer = value.integer()) return Value::integer(*integer);
  const std::string_view raw = value.raw();
  if (raw.find_first_of(".eE") == std::string_view::npos) {
    return Value::big_integer(std::string(raw));
  }
  // A number without a value is below the smallest double. Documents reject numbers above the
  // largest one.
  return Value::real(value.number().value_or(raw.front() == '-' ? -0.0 : 0.0));
}

}  // namespace

Value Value::undefined(std::string reason) {
  return Value(Storage(Undefined{std::make_shared<const std::string>(std::move(reason))}));
}

Value Value::big_integer(std::string digits) {
  return Value(Storage(BigInteger{std::make_shared<const std::string>(std::move(digits))}));
}

Value Value::text(std::string owned) {
  auto owner = std::make_shared<const std::string>(std::move(owned));
  // The view points into the shared text, so it survives moves of the value.
  const std::string_view view = *owner;
  return Value(Storage(Text{std::move(owner), view}));
}

// The owner is shared, and so no bytes are copied.
Value Value::slice_of(const Value& whole, std::string_view part) {
  const Text* text = whole.get_if<Text>();
  SL_CHECK(text != nullptr);
  return Value(Storage(Text{text->owner, part}));
}

Value Value::list(std::vector<Value> items, SequenceKind kind) {
  std::uint32_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return Value(Storage(
      Sequence{kind, depth + 1, std::make_shared<const std::vector<Value>>(std::move(items))}));
}

Value Value::dict(Dict dict) {
  return Value(Storage(std::make_shared<const Dict>(std::move(dict))));
}

Value Value::late_dict(std::shared_ptr<const LateDict> dict) {
  return Value(Storage(std::move(dict)));
}

Value Value::method(BoundMethod method) {
  return Value(Storage(std::make_shared<const BoundMethod>(std::move(method))));
}

Value Value::from_json(const json::Value& value) {
  switch (value.kind()) {
    case json::Kind::Null:
      return none();
    case json::Kind::Bool:
      return boolean(*value.boolean());
    case json::Kind::Number:
      return number_of(value);
    case json::Kind::String:
      return text_view(*value.string());
    case json::Kind::Array: {
      std::vector<Value> items;
      items.reserve(value.size());
      for (const json::Value item : value) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case json::Kind::Object: {
      std::vector<Dict::Entry> entries;
      entries.reserve(value.size());
      for (const json::Value member : value) {
        entries.emplace_back(text_view(member.name()), from_json(member));
      }
      return dict(Dict(std::move(entries)));
    }
  }
  return none();
}

std::optional<std::string_view> Value::as_text() const {
  if (const Text* text = get_if<Text>()) return text->view;
  return std::nullopt;
}

std::optional<std::span<const Value>> Value::as_items() const {
  if (const Sequence* sequence = get_if<Sequence>()) {
    return std::span<const Value>(*sequence->items);
  }
  return std::nullopt;
}

const Dict* Value::as_dict() const {
  if (const auto* dict = get_if<std::shared_ptr<const Dict>>()) return dict->get();
  if (const auto* late = get_if<std::shared_ptr<const LateDict>>())
    return (*late)->made().as_dict();
  return nullptr;
}

Foreign* Value::as_foreign() const {
  Foreign* const* object = get_if<Foreign*>();
  return object == nullptr ? nullptr : *object;
}

std::optional<std::int64_t> Value::as_integer() const {
  if (const auto* integer = get_if<std::int64_t>()) return *integer;
  if (const auto* flag = get_if<bool>()) return *flag ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::as_real() const {
  if (const auto* real = get_if<double>()) return *real;
  if (const auto integer = as_integer()) return static_cast<double>(*integer);
  if (const auto* big = get_if<BigInteger>()) {
    double value = 0;
    const std::string& digits = *big->digits;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc{}) return value;
    // Python's integers have any size. A double above its range is infinite.
    return digits.front() == '-' ? -std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

std::uint32_t Value::depth() const {
  if (const Sequence* sequence = get_if<Sequence>()) return sequence->depth;
  // The dict must not be created only to find its depth.
  if (const auto* late = get_if<std::shared_ptr<const LateDict>>()) return (*late)->depth_max();
  if (const Dict* dict = as_dict()) return dict->depth();
  if (const auto* method = get_if<std::shared_ptr<const BoundMethod>>()) {
    return (*method)->self.depth() + 1;
  }
  return 0;
}

bool Value::is_true() const {
  if (is_undefined() || is_none()) return false;
  if (const auto integer = as_integer()) return *integer != 0;
  if (const auto* real = get_if<double>()) return *real != 0.0;
  if (const auto text = as_text()) return !text->empty();
  if (const Sequence* sequence = get_if<Sequence>()) {
    return sequence->kind == SequenceKind::Generator || !sequence->items->empty();
  }
  if (const Dict* dict = as_dict()) return dict->size() > 0;
  return true;
}

std::string_view Value::type_name() const {
  if (const Sequence* sequence = get_if<Sequence>()) {
    static constexpr std::array<std::string_view, 4> kNames{"list", "tuple", "generator",
                                                            "dict_view"};
    return kNames[static_cast<std::size_t>(sequence->kind)];
  }
  if (const Foreign* object = as_foreign()) return object->type_name();
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (get_if<bool>() != nullptr) return "bool";
  if (get_if<double>() != nullptr) return "float";
  if (get_if<Text>() != nullptr) return "str";
  if (as_dict() != nullptr) return "dict";
  if (get_if<std::shared_ptr<const BoundMethod>>() != nullptr) return "builtin_function_or_method";
  return "int";
}

bool Value::is_callable() const {
  if (get_if<std::shared_ptr<const BoundMethod>>() != nullptr) return true;
  const Foreign* object = as_foreign();
  // Python's callable() is true for Undefined, which has a __call__ that fails.
  return object == nullptr ? is_undefined() : object->is_callable();
}

Dict::Dict(std::vector<Entry> entries) : entries_(std::move(entries)) {
  for (const Entry& entry : entries_) {
    depth_ = std::max(depth_, 1 + std::max(entry.first.depth(), entry.second.depth()));
  }
  if (entries_.size() > 1) index_and_merge();
}

void Dict::index_and_merge() {
  std::vector<std::uint32_t> order(entries_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<std::uint8_t> is_dropped(entries_.size(), 0);
  // After the sort, equal text keys are neighbours. Keys of other kinds come from the template's
  // own source, and so they are few.
  const auto text_end = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) {
    return entries_[i].first.as_text().has_value();
  });
  const auto text_of = [&](std::uint32_t i) { return *entries_[i].first.as_text(); };
  std::stable_sort(order.begin(), text_end,
                   [&](auto a, auto b) { return text_of(a) < text_of(b); });
  const auto merge = [&](std::uint32_t first, std::uint32_t later) {
    // The first position stays, with the last value.
    entries_[first].second = entries_[later].second;
    is_dropped[later] = 1;
  };
  std::uint32_t first = 0;
  for (auto at = order.begin(); at != text_end; ++at) {
    if (at != order.begin() && text_of(first) == text_of(*at)) {
      merge(first, *at);
    } else {
      first = *at;
    }
  }
  for (auto at = text_end; at != order.end(); ++at) {
    const auto same = std::find_if(text_end, at, [&](std::uint32_t earlier) {
      return is_dropped[earlier] == 0 && same_key(entries_[earlier].first, entries_[*at].first);
    });
    if (same != at) merge(*same, *at);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_dropped[i] != 0) continue;
    if (kept != i) entries_[kept] = std::move(entries_[i]);
    ++kept;
  }
  entries_.resize(kept);
  // A small dict needs no index.
  if (kept <= kLinearEntriesMax) return;
  for (std::uint32_t i = 0; i < kept; ++i) {
    if (entries_[i].first.as_text()) by_text_.push_back(i);
  }
  std::sort(by_text_.begin(), by_text_.end(),
            [&](auto a, auto b) { return text_of(a) < text_of(b); });
}

const Value* Dict::find(std::string_view key) const {
  if (entries_.size() <= kLinearEntriesMax) {
    for (const Entry& entry : entries_) {
      if (entry.first.as_text() == key) return &entry.second;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(
      by_text_.begin(), by_text_.end(), key,
      [&](std::uint32_t i, auto wanted) { return *entries_[i].first.as_text() < wanted; });
  if (at == by_text_.end() || *entries_[*at].first.as_text() != key) return nullptr;
  return &entries_[*at].second;
}

const Value* Dict::find(const Value& key) const {
  if (const auto text = key.as_text()) return find(*text);
  for (const Entry& entry : entries_) {
    if (same_key(entry.first, key)) return &entry.second;
  }
  return nullptr;
}

bool is_hashable(const Value& value) {
  if (const Sequence* sequence = value.get_if<Sequence>()) {
    return sequence->kind == SequenceKind::Tuple &&
           std::all_of(sequence->items->begin(), sequence->items->end(), is_hashable);
  }
  return value.as_dict() == nullptr;
}

}  // namespace sightline::python
