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

// The Python type of a list-like value. It decides printing, truth and the allowed operations. A
// Generator is the result of a lazy filter: always true, without length and index. A View is
// keys(), values() or items() of a dict, or range(): with length, without index.
enum class SequenceKind : std::uint8_t { List, Tuple, Generator, View };

// A method of a value before its call, for example "x".strip or d.items.
struct BoundMethod;
// A name or attribute that does not exist. Printing it gives an empty text. Using it is an error
// with this `reason`.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};
// An integer above 64 bits, as its decimal digits. It can be printed and compared for equality.
// Arithmetic with it is an error.
struct BigInteger {
  std::shared_ptr<const std::string> digits;
};
// An object that only the template language has: a namespace, a macro, a loop variable or a
// function. Two of them are equal if they are the same object. The evaluator owns them, and they
// must live longer than any value.
class Foreign {
 public:
  virtual ~Foreign() = default;
  // Python's name of the type, for error messages.
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  [[nodiscard]] virtual bool is_callable() const { return false; }
  // Returns an attribute, or Undefined.
  [[nodiscard]] virtual Result<Value> attribute(std::string_view name) = 0;
};

// A dict whose creation waits for the first read. It owns the data that its values view. Thread
// safety: one thread at a time, also for all values that share it.
class LateDict {
 public:
  virtual ~LateDict() = default;
  // Returns the dict, always the same one.
  [[nodiscard]] virtual const Value& made() const = 0;
  // An upper bound of its depth, known before it is created.
  [[nodiscard]] virtual std::uint32_t depth_max() const = 0;
};

// UTF-8 text. It is shared, or a view of memory that lives longer than the value, for example a
// request body.
struct Text {
  std::shared_ptr<const std::string> owner;  // null for a view
  std::string_view view;
};

// A list-like value. `depth` is 1 + the depth of its deepest item.
struct Sequence {
  SequenceKind kind = SequenceKind::List;
  std::uint32_t depth = 1;
  std::shared_ptr<const std::vector<Value>> items;
};

// The most containers inside one another. Code that builds a value from values must check depth()
// first. Visiting and destroying a value takes one level of recursion per container.
inline constexpr std::uint32_t kValueDepthMax = 200;

// A Python value. It is immutable and cheap to copy, because containers and long texts are shared.
// Thread safety: as std::shared_ptr<const T>, except for values with a LateDict.
class Value {
 public:
  using Storage =
      std::variant<Undefined, std::nullptr_t, bool, std::int64_t, double, BigInteger, Text,
                   Sequence, std::shared_ptr<const Dict>, std::shared_ptr<const LateDict>,
                   std::shared_ptr<const BoundMethod>, Foreign*>;

  // Python's `None`.
  Value() : storage_(nullptr) {}
  static Value none() { return Value(); }
  // `reason` is the message of the error when the value is used.
  static Value undefined(std::string reason);
  static Value boolean(bool value) { return Value(Storage(value)); }
  static Value integer(std::int64_t value) { return Value(Storage(value)); }
  static Value real(double value) { return Value(Storage(value)); }
  static Value big_integer(std::string digits);
  static Value text(std::string owned);
  // The text must live longer than the value.
  static Value text_view(std::string_view text) { return Value(Storage(Text{nullptr, text})); }
  // Returns a part of `whole`, which must be a Text, without a copy.
  static Value slice_of(const Value& whole, std::string_view part);
  static Value list(std::vector<Value> items, SequenceKind kind = SequenceKind::List);
  static Value dict(Dict dict);
  static Value late_dict(std::shared_ptr<const LateDict> dict);
  static Value method(BoundMethod method);
  static Value foreign(Foreign* object) { return Value(Storage(object)); }

  // Converts JSON. Texts become views of the document, which must live longer than the value.
  // Numbers are read as Python's json module does. Integers may have any size, and floats that
  // overflow become infinite. The limit of the document limits the depth.
  static Value from_json(const json::Value& value);

  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  [[nodiscard]] bool is_undefined() const { return get_if<Undefined>() != nullptr; }
  [[nodiscard]] bool is_none() const { return get_if<std::nullptr_t>() != nullptr; }
  // Each of these returns nothing, or null, for a value of another kind.
  [[nodiscard]] std::optional<std::string_view> as_text() const;
  [[nodiscard]] std::optional<std::span<const Value>> as_items() const;
  [[nodiscard]] const Dict* as_dict() const;
  [[nodiscard]] Foreign* as_foreign() const;
  // For integers and bools, but not for floats.
  [[nodiscard]] std::optional<std::int64_t> as_integer() const;
  // For integers, bools and floats.
  [[nodiscard]] std::optional<double> as_real() const;

  // Returns 0 for scalars, and otherwise 1 + the depth of the deepest item. For a LateDict it
  // returns depth_max().
  [[nodiscard]] std::uint32_t depth() const;
  // Python's bool(value).
  [[nodiscard]] bool is_true() const;
  // "str", "dict", "NoneType" and so on.
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

// A mapping in insertion order. Of equal keys the first position and the last value stay, as in
// Python. It never changes after its construction.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  Dict() = default;
  // The keys must be hashable, which excludes containers (is_hashable()).
  explicit Dict(std::vector<Entry> entries);

  // In the order of insertion.
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  // Returns the value of a key, or null. A look-up of a text key takes logarithmic time.
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;

 private:
  void index_and_merge();

  std::vector<Entry> entries_;
  std::uint32_t depth_ = 1;
  // Positions of the text keys, sorted by key. A look-up takes logarithmic time even for hostile
  // keys.
  std::vector<std::uint32_t> by_text_;
};

// Returns whether the value may be a key. Lists and dicts may not.
bool is_hashable(const Value& value);

}  // namespace sightline::python
