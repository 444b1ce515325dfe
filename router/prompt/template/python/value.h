// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

namespace sightline::python {

class Value;
class Dict;

// What a list-like value is in Python: it decides printing, truth and what may be asked of it.
// Generator: result of a lazy filter (always true, no length, no index). View: keys(), values(),
// items() of a dict, and range() (length, but no index).
enum class SequenceKind : std::uint8_t { List, Tuple, Generator, View };

// A method found on a value and not yet called: "x".strip, d.items.
struct BoundMethod;
// A name or attribute that does not exist. Printing it gives nothing, using it fails with `reason`.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};
// An integer beyond 64 bits, kept as its decimal digits: it can be printed and compared for
// equality, and counted with in no other way.
struct BigInteger {
  std::shared_ptr<const std::string> digits;
};
// Things that only the template language knows: namespaces, macros, loop variables, functions.
// Compared by identity. Whoever evaluates owns them and keeps them longer than any value.
class Foreign {
 public:
  virtual ~Foreign() = default;
  // Python's type name, for error messages.
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  [[nodiscard]] virtual bool is_callable() const { return false; }
  // An attribute; Undefined where there is none.
  [[nodiscard]] virtual Result<Value> attribute(std::string_view name) = 0;
};

// A dict that is made when somebody first looks at it; holds what its values view.
// Thread safety: none, also not between values that share it.
class LateDict {
 public:
  virtual ~LateDict() = default;
  // A dict, always the same.
  [[nodiscard]] virtual const Value& made() const = 0;
  // No less than its depth.
  [[nodiscard]] virtual std::uint32_t depth_max() const = 0;
};

// UTF-8 text: owned (shared) or a view of memory that outlives the value, such as a request body.
struct Text {
  std::shared_ptr<const std::string> owner;  // null: a view
  std::string_view view;
};

struct Sequence {
  SequenceKind kind = SequenceKind::List;
  std::uint32_t depth = 1;
  std::shared_ptr<const std::vector<Value>> items;
};

// Containers within one another. Whoever builds values from values checks depth() against it
// before building on: walking and destroying a value recurses once per level.
inline constexpr std::uint32_t kValueDepthMax = 200;

// A Python value. Immutable and cheap to copy (containers and long texts are shared).
// Thread safety: as std::shared_ptr<const T>, but for what holds a LateDict.
class Value {
 public:
  using Storage =
      std::variant<Undefined, std::nullptr_t, bool, std::int64_t, double, BigInteger, Text,
                   Sequence, std::shared_ptr<const Dict>, std::shared_ptr<const LateDict>,
                   std::shared_ptr<const BoundMethod>, Foreign*>;

  Value() : storage_(nullptr) {}  // None
  static Value none() { return Value(); }
  static Value undefined(std::string reason);
  static Value boolean(bool value) { return Value(Storage(value)); }
  static Value integer(std::int64_t value) { return Value(Storage(value)); }
  static Value real(double value) { return Value(Storage(value)); }
  static Value big_integer(std::string digits);
  static Value text(std::string owned);
  // text must outlive the value.
  static Value text_view(std::string_view text) { return Value(Storage(Text{nullptr, text})); }
  // A part of `whole` (which is Text) without a copy.
  static Value slice_of(const Value& whole, std::string_view part);
  static Value list(std::vector<Value> items, SequenceKind kind = SequenceKind::List);
  static Value dict(Dict dict);
  static Value late_dict(std::shared_ptr<const LateDict> dict);
  static Value method(BoundMethod method);
  static Value foreign(Foreign* object) { return Value(Storage(object)); }

  // Texts become views of the document, which must outlive the value. Numbers as Python's json
  // module reads them: integers of any size, floats with infinities for overflow. Depth is bounded
  // by the document's own limit.
  static Value from_json(const json::Value& value);

  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  [[nodiscard]] bool is_undefined() const { return get_if<Undefined>() != nullptr; }
  [[nodiscard]] bool is_none() const { return get_if<std::nullptr_t>() != nullptr; }
  [[nodiscard]] std::optional<std::string_view> as_text() const;
  [[nodiscard]] std::optional<std::span<const Value>> as_items() const;
  [[nodiscard]] const Dict* as_dict() const;
  [[nodiscard]] Foreign* as_foreign() const;
  // Integers and bools; not floats.
  [[nodiscard]] std::optional<std::int64_t> as_integer() const;
  // Integers, bools and floats.
  [[nodiscard]] std::optional<double> as_real() const;

  // 0 for scalars, else 1 + the deepest item; of late dicts what they say.
  [[nodiscard]] std::uint32_t depth() const;
  // Python's bool(value).
  [[nodiscard]] bool is_true() const;
  // "str", "dict", "NoneType", …
  [[nodiscard]] std::string_view type_name() const;
  [[nodiscard]] bool is_callable() const;

 private:
  explicit Value(Storage storage) : storage_(std::move(storage)) {}
  Storage storage_;
};

struct BoundMethod {
  Value self;
  std::string_view name;  // points into the table of known methods
};

// An insertion-ordered mapping; of equal keys the first position and the last value stay, as in
// Python. Build it, then share it: it never changes afterwards.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  Dict() = default;
  // Keys must be hashable (no containers): see is_hashable.
  explicit Dict(std::vector<Entry> entries);

  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;

 private:
  void index_and_merge();

  std::vector<Entry> entries_;
  std::uint32_t depth_ = 1;
  // Positions of the text keys, sorted by key: lookups stay logarithmic whatever a peer sends.
  std::vector<std::uint32_t> by_text_;
};

// May the value be a key? (Lists and dicts may not.)
bool is_hashable(const Value& value);

}  // namespace sightline::python
