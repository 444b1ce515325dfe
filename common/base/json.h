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
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/result.h"

namespace sightline::json {

enum class Kind : std::uint8_t { Null, Bool, Number, String, Array, Object };

struct Node;
struct DocumentState;
class Document;

// A cheap view of one value of a Document, free to copy. The Document must outlive it. Moving the
// Document keeps it valid. Reading a value as the wrong kind gives an empty optional, an empty view
// or an empty range.
class Value {
 public:
  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is(Kind kind) const { return this->kind() == kind; }

  [[nodiscard]] std::optional<bool> boolean() const;
  // Only an integer in range, written without fraction or exponent.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  [[nodiscard]] std::optional<double> number() const;
  // The text of a string with its escapes resolved, valid UTF-8.
  [[nodiscard]] std::optional<std::string_view> string() const;

  // The members of an object or the elements of an array. 0 for other kinds.
  [[nodiscard]] std::size_t size() const;
  // The member of an object with this name. Of equal names the last one counts, as in Python's
  // parser, which the engines use. find_all() returns every one, for edits of the source text.
  [[nodiscard]] std::optional<Value> find(std::string_view name) const;
  [[nodiscard]] std::vector<Value> find_all(std::string_view name) const;
  // The name of this value within its object. Empty for a value outside of an object.
  [[nodiscard]] std::string_view name() const;

  // The place of the value's text in Document::text(), with quotes and brackets.
  [[nodiscard]] std::size_t begin_offset() const;
  [[nodiscard]] std::size_t end_offset() const;
  [[nodiscard]] std::string_view raw() const;
  // The place of the opening quote of the member's name, to remove a member. Only for members of
  // objects.
  [[nodiscard]] std::size_t name_offset() const;

  // Goes from value to value in source order. It skips the values within them.
  class Iterator {
   public:
    Iterator(const DocumentState* document, std::uint32_t index)
        : document_(document), index_(index) {}
    Value operator*() const { return {document_, index_}; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const DocumentState* document_;
    std::uint32_t index_;
  };
  // The elements of an array or the members of an object, in source order.
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

 private:
  friend class Document;
  friend class Iterator;
  Value(const DocumentState* document, std::uint32_t index) : document_(document), index_(index) {}
  [[nodiscard]] const Node& node() const;

  const DocumentState* document_;
  std::uint32_t index_;
};

// The limit that an error about too many values names.
inline constexpr std::string_view kValuesLimit = "json-values-max";

// Which values within a member of the root a Document keeps. It checks all of them in any case.
enum class Inside : std::uint8_t {
  // All values.
  Kept,
  // Of an array only the first value, without the values within it.
  First,
  // No values. The member keeps its kind, size and text. find() finds nothing in it.
  Dropped,
};

// Limits on what a hostile text makes the parser build.
struct ParseLimits {
  // The deepest nesting of brackets.
  std::size_t depth_max = 64;
  // The most values that the text may hold, dropped ones included.
  std::size_t values_max = 4'000'000;
  // The most values that the Document keeps, at 36 bytes each.
  std::size_t kept_max = 4'000'000;
  // Returns Inside for a member of the root by its name. Null: all values are kept.
  Inside (*inside_of)(std::string_view name) = nullptr;
  // Is charged for the memory that the Document takes besides its text. The charge stays until the
  // caller gives it back. While a long text is parsed, the parser takes up to four times its bytes
  // more. Null: nothing is charged.
  HeldBytes* memory = nullptr;
};

// A parsed JSON text. It keeps the text, for editors that splice it byte for byte. The parser
// validates syntax, numbers, escapes and UTF-8 (RFC 8259). Strings without escapes are views of the
// text, so a document of long strings costs no copies.
// Thread safety: immutable after parse(), but for drop_but().
class Document {
 public:
  // Takes ownership of the text. Reserve 64 spare bytes in it to avoid a copy. The root must be an
  // object or an array. Errors: InvalidArgument with the byte offset, TooLarge for a limit. Both
  // blame the client.
  static Result<Document> parse(std::string text, const ParseLimits& limits = {});

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  [[nodiscard]] Value root() const { return {state_.get(), 0}; }
  [[nodiscard]] const std::string& text() const;
  // All values, containers and dropped ones included. values_max limits this number.
  [[nodiscard]] std::size_t value_count() const;

  // The values that are not dropped.
  [[nodiscard]] std::size_t kept_count() const;

  // Drops all values within the root's members, except `kept` and the values within these, which
  // stay valid views. Returns the bytes of memory that this freed. All other views end, except
  // those of the root.
  std::size_t drop_but(std::span<Value* const> kept);

 private:
  explicit Document(std::unique_ptr<DocumentState> state);
  std::unique_ptr<DocumentState> state_;
};

// The elements of an array of integers from 0 to 2^32-1, also of an array whose values were
// dropped. Returns nothing if an element is something else.
std::optional<std::vector<std::uint32_t>> unsigned_integers(const Value& array);

// Appends the text as a JSON string with its quotes. The text must be valid UTF-8.
void append_quoted(std::string& out, std::string_view text);
[[nodiscard]] std::string to_quoted(std::string_view text);

}  // namespace sightline::json
