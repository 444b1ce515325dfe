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

// A cheap view of one value of a Document, which must outlive it; moving the Document is fine.
// Copy freely.
// Reads of the wrong kind give an empty optional, an empty view or nothing to iterate.
class Value {
 public:
  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is(Kind kind) const { return this->kind() == kind; }

  [[nodiscard]] std::optional<bool> boolean() const;
  // Integers in range and without fraction or exponent only.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  [[nodiscard]] std::optional<double> number() const;
  // Unescaped text of a string, valid UTF-8.
  [[nodiscard]] std::optional<std::string_view> string() const;

  // Members of an object or elements of an array.
  [[nodiscard]] std::size_t size() const;
  // Member of an object by name. Of duplicate names the last one counts, as in Python, which is
  // what the engines parse with. find_all gives each of them, for editing the source text.
  [[nodiscard]] std::optional<Value> find(std::string_view name) const;
  [[nodiscard]] std::vector<Value> find_all(std::string_view name) const;
  // Name of this value within its object; empty elsewhere.
  [[nodiscard]] std::string_view name() const;

  // Position of the value's own text in Document::text(), quotes and brackets included.
  [[nodiscard]] std::size_t begin_offset() const;
  [[nodiscard]] std::size_t end_offset() const;
  [[nodiscard]] std::string_view raw() const;
  // Where the member's name begins (its opening quote), for removing a member; only inside objects.
  [[nodiscard]] std::size_t name_offset() const;

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
  // Iterates elements or members in source order.
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

// The limit that an error of too many values names.
inline constexpr std::string_view kValuesLimit = "json-values-max";

// What becomes of the values within a member of the root. All are checked the same.
enum class Inside : std::uint8_t {
  Kept,
  First,    // of an array the first value, without what is within that
  Dropped,  // the member knows its kind, size and text; find() finds nothing in it
};

struct ParseLimits {
  std::size_t depth_max = 64;
  std::size_t values_max = 4'000'000;
  std::size_t kept_max = 4'000'000;  // of them that are not dropped: 36 bytes each
  // By the member's name; null: all are kept.
  Inside (*inside_of)(std::string_view name) = nullptr;
  // What the document takes besides its text is charged here, for as long as the caller lets it
  // stand; null: nowhere. While it is parsed, a long text takes up to four times its bytes more.
  HeldBytes* memory = nullptr;
};

// A parsed JSON text that keeps the text itself, so that editors can splice it byte-exactly.
// Everything is validated: syntax, numbers, escapes, UTF-8 (RFC 8259). Strings without escapes are
// views of the text, so a document of long strings costs no copies.
// Thread safety: immutable after parse.
class Document {
 public:
  // Takes the text over; reserve 64 spare bytes in it to avoid a copy. Errors: InvalidArgument
  // (with the byte offset), TooLarge (limits), blamed on the client.
  static Result<Document> parse(std::string text, const ParseLimits& limits = {});

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  [[nodiscard]] Value root() const { return {state_.get(), 0}; }
  [[nodiscard]] const std::string& text() const;
  // All of them, containers and dropped ones included: what counts towards values_max.
  [[nodiscard]] std::size_t value_count() const;

  // Those that are not dropped.
  [[nodiscard]] std::size_t kept_count() const;

  // Drops what is within the root's members, but for these values and what is within them, which
  // are views of it as before. Gives the bytes of memory that are free now. All other views but
  // those of the root end.
  std::size_t drop_but(std::span<Value* const> kept);

 private:
  explicit Document(std::unique_ptr<DocumentState> state);
  std::unique_ptr<DocumentState> state_;
};

// The elements of an array of non-negative integers up to 2^32-1, also where they were dropped.
// Nothing: it holds something else.
std::optional<std::vector<std::uint32_t>> unsigned_integers(const Value& array);

// Appends text as a JSON string, quotes included; input must be valid UTF-8.
void append_quoted(std::string& out, std::string_view text);
[[nodiscard]] std::string to_quoted(std::string_view text);

}  // namespace sightline::json
