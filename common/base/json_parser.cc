// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <limits>

#include <simdjson.h>

#include "common/base/json_nodes.h"
#include "common/base/json_strings.h"
#include "common/base/memory_ledger.h"

namespace sightline::json {
namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;

// A parser takes up to six bytes of memory for each byte of text. A thread keeps its parser for
// shorter texts only, so one long text does not occupy memory for ever.
constexpr std::size_t kKeptParserTextBytes = 1U << 20U;
// simdjson stores the position of each bracket, comma, colon and value in this many bytes.
constexpr std::size_t kPlaceBytes = 4;
// The nodes of the first allocation. Small documents need no second one.
constexpr std::size_t kNodesMin = 16;
constexpr char kSubject[] = "the JSON of the request";

// At least as many positions as simdjson stores of the text. Each value follows a bracket, comma or
// colon. Computed before parsing, to refuse a text before simdjson allocates memory for it.
std::size_t places_max(std::string_view text) {
  constexpr std::size_t kStep = 255;  // the most that an 8-bit counter counts
  std::size_t places = 1;
  for (std::size_t at = 0; at < text.size(); at += kStep) {
    const std::string_view part = text.substr(at, kStep);
    std::uint8_t marks = 0;
    for (const char c : part) {
      const int bracket = c == '{' || c == '}' || c == '[' || c == ']';
      marks = static_cast<std::uint8_t>(marks + (bracket | (c == ',' || c == ':')));
    }
    places += std::size_t{2} * marks;
  }
  return std::min(places, text.size() + 1);
}

// Memory of one step. The destructor gives it back.
class Passing {
 public:
  explicit Passing(HeldBytes* memory) : memory_(memory) {}
  ~Passing() {
    if (memory_ != nullptr) memory_->remove(bytes_);
  }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;

  [[nodiscard]] Result<Done> take(std::size_t bytes) {
    if (memory_ == nullptr) return Done{};
    if (!memory_->add(bytes)) return memory_error(*memory_, bytes, kSubject);
    bytes_ += bytes;
    return Done{};
  }

 private:
  HeldBytes* memory_;
  std::size_t bytes_ = 0;
};

// Turns simdjson's forward-only cursor into nodes and keeps source positions.
class Builder {
 public:
  Builder(DocumentState& state, const ParseLimits& limits)
      : text_(state.text),
        nodes_(state.nodes),
        unescaped_(state.unescaped),
        values_(state.values),
        limits_(limits) {}

  Result<Done> run() {
    // Nodes hold offsets of 32 bits.
    if (text_.size() > std::numeric_limits<std::uint32_t>::max())
      return too_large("bytes", std::numeric_limits<std::uint32_t>::max());
    // One parser a thread, because its buffers can be used again.
    static thread_local od::parser kept;
    od::parser used_once;
    const bool is_long = text_.size() > kKeptParserTextBytes;
    od::parser& parser = is_long ? used_once : kept;
    Passing places(limits_.memory);
    if (is_long) SL_TRY(places.take(kPlaceBytes * places_max(text_)));
    const simdjson::padded_string_view view(text_.data(), text_.size(), text_.capacity());
    od::document document;
    if (const auto error = parser.iterate(view).get(document)) return syntax(error, 0);
    od::json_type type{};
    if (const auto error = document.type().get(type)) return syntax(error, 0);
    if (type != od::json_type::object && type != od::json_type::array) {
      return client_error(ErrorCode::InvalidArgument, "JSON: expected an object or an array");
    }
    od::value root;
    if (const auto error = document.get_value().get(root)) return syntax(error, 0);
    SL_TRY(add(root, 0));
    // simdjson stops after the root and does not look at the bytes after it.
    if (text_.find_first_not_of(" \t\r\n", nodes_[0].end) != std::string::npos) {
      return client_error(ErrorCode::InvalidArgument, "JSON: text after the end of the document");
    }
    return Done{};
  }

 private:
  Error syntax(error_code error, std::size_t offset) const {
    return client_error(ErrorCode::InvalidArgument,
                        "JSON: " + std::string(simdjson::error_message(error)) + " (near byte " +
                            std::to_string(offset) + ")");
  }

  std::uint32_t offset_of(const char* position) const {
    return static_cast<std::uint32_t>(position - text_.data());
  }

  // A token reaches up to the next token. This cuts the white space between them.
  std::uint32_t token_end(std::string_view token) const {
    std::size_t size = token.size();
    while (size > 0 && static_cast<unsigned char>(token[size - 1]) <= ' ') --size;
    return offset_of(token.data() + size);
  }

  Result<Done> add(od::value& value, std::size_t depth) {
    // Recursion uses stack, so a hostile depth must end before add() calls itself again.
    if (depth > limits_.depth_max) return too_large("depth", limits_.depth_max);
    if (values_ >= limits_.values_max) return too_large("values", limits_.values_max);
    if (nodes_.size() >= limits_.kept_max) return too_large("values", limits_.kept_max);
    od::json_type type{};
    const std::string_view token = value.raw_json_token();
    const std::uint32_t begin = offset_of(token.data());
    if (const auto error = value.type().get(type)) return syntax(error, begin);
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    // add_node() may move the vector, so this function uses the index and keeps no reference.
    SL_TRY(add_node());
    nodes_[index].begin = begin;
    if (type == od::json_type::object) {
      SL_TRY(add_object(value, index, depth));
    } else if (type == od::json_type::array) {
      SL_TRY(add_array(value, index, depth));
    } else {
      nodes_[index].end = token_end(token);
      SL_TRY(add_scalar(value, type, nodes_[index]));
    }
    nodes_[index].next = static_cast<std::uint32_t>(nodes_.size());
    return Done{};
  }

  Result<Done> add_node() {
    // Charges before it allocates. Growth doubles, as the vector would, but is known in advance.
    if (nodes_.size() == nodes_.capacity()) {
      const std::size_t more = std::max(nodes_.capacity(), kNodesMin);
      SL_TRY(charge(more * sizeof(Node)));
      nodes_.reserve(nodes_.size() + more);
    }
    nodes_.push_back(Node{});
    ++values_;
    return Done{};
  }

  Result<Done> charge(std::size_t bytes) const {
    const bool fits = limits_.memory == nullptr || limits_.memory->add(bytes);
    if (!fits) return memory_error(*limits_.memory, bytes, kSubject);
    return Done{};
  }

  // Whether to drop the last child of `container`. The caller then keeps only the child's end.
  [[nodiscard]] bool drops_child(std::uint32_t container, std::size_t depth) const {
    if (depth == 0 || inside_ == Inside::Kept) return false;
    return inside_ == Inside::Dropped || depth > 1 || nodes_[container].size > 1;
  }

  void drop(std::uint32_t child, std::size_t unescaped) {
    nodes_.resize(child);
    unescaped_.resize(unescaped);
  }

  // These limits are fixed. No setting changes them.
  static Error too_large(const std::string& what, std::size_t most) {
    const std::string limit = "json-" + what + "-max";
    return limit_error(ErrorCode::TooLarge, limit,
                       "JSON: " + (what == "depth" ? "nested too deeply" : "too many " + what) +
                           ", at most " + std::to_string(most) + " (" + limit + ", fixed)");
  }

  Result<Done> add_object(od::value& value, std::uint32_t index, std::size_t depth) {
    nodes_[index].kind = Kind::Object;
    od::object object;
    if (const auto error = value.get_object().get(object)) return syntax(error, begin_of(index));
    std::uint32_t end = nodes_[index].begin + 1;
    for (auto field_result : object) {
      od::field field;
      if (const auto error = std::move(field_result).get(field)) {
        return syntax(error, begin_of(index));
      }
      const char* raw_key = field.key().raw();
      const std::size_t unescaped = unescaped_.size();
      const StringPlace name = SL_TRY(name_at(raw_key));
      // Asked once for each member of the root. The answer holds for all values within it.
      if (depth == 0 && limits_.inside_of != nullptr) inside_ = limits_.inside_of(text_of(name));
      od::value member = field.value();
      const auto child = static_cast<std::uint32_t>(nodes_.size());
      SL_TRY(add(member, depth + 1));
      nodes_[child].is_name_unescaped = name.is_unescaped;
      nodes_[child].name_at = name.at;
      nodes_[child].name_size = name.size;
      nodes_[child].name_begin = offset_of(raw_key) - 1;
      ++nodes_[index].size;
      end = nodes_[child].end;
      if (drops_child(index, depth)) drop(child, unescaped);
    }
    close(index, end, '}');
    return Done{};
  }

  Result<Done> add_array(od::value& value, std::uint32_t index, std::size_t depth) {
    nodes_[index].kind = Kind::Array;
    od::array array;
    if (const auto error = value.get_array().get(array)) return syntax(error, begin_of(index));
    std::uint32_t end = nodes_[index].begin + 1;
    for (auto element_result : array) {
      od::value element;
      if (const auto error = std::move(element_result).get(element)) {
        return syntax(error, begin_of(index));
      }
      const auto child = static_cast<std::uint32_t>(nodes_.size());
      const std::size_t unescaped = unescaped_.size();
      SL_TRY(add(element, depth + 1));
      ++nodes_[index].size;
      end = nodes_[child].end;
      if (drops_child(index, depth)) drop(child, unescaped);
    }
    close(index, end, ']');
    return Done{};
  }

  std::size_t begin_of(std::uint32_t index) const { return nodes_[index].begin; }

  // The bracket follows the last child, or the opening bracket, after white space.
  void close(std::uint32_t index, std::uint32_t end, char bracket) {
    while (text_[end] != bracket) ++end;
    nodes_[index].end = end + 1;
  }

  Result<Done> add_scalar(od::value& value, od::json_type type, Node& node) {
    switch (type) {
      case od::json_type::string: {
        node.kind = Kind::String;
        // Not skipped: simdjson would take a ':' after it for the colon of a member and skip
        // further.
        if (const auto error = value.get_raw_json_string().error()) {
          return syntax(error, node.begin);
        }
        const StringPlace text = SL_TRY(unescape(node.begin + 1, node.end - 1));
        node.is_text_unescaped = text.is_unescaped;
        node.text_at = text.at;
        node.size = text.size;
        return Done{};
      }
      case od::json_type::number: {
        node.kind = Kind::Number;
        double number = 0;
        // The value is not used: get_double() validates the number's syntax.
        if (const auto error = value.get_double().get(number)) return syntax(error, node.begin);
        return Done{};
      }
      case od::json_type::boolean: {
        node.kind = Kind::Bool;
        if (const auto error = value.get_bool().get(node.boolean)) return syntax(error, node.begin);
        return Done{};
      }
      default:
        // Read as a result, because its conversion to bool would throw on a malformed null.
        bool is_null = false;
        if (const auto error = value.is_null().get(is_null)) return syntax(error, node.begin);
        return Done{};
    }
  }

  // The place of a string's text.
  struct StringPlace {
    bool is_unescaped = false;
    std::uint32_t at = 0;
    std::uint32_t size = 0;
  };

  Result<StringPlace> name_at(const char* raw_key) {
    const std::uint32_t begin = offset_of(raw_key);
    std::uint32_t end = begin;
    // simdjson has found the end of the string before, so a quote follows.
    while (text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    return unescape(begin, end);
  }

  [[nodiscard]] std::string_view text_of(const StringPlace& piece) const {
    return std::string_view(piece.is_unescaped ? unescaped_ : text_).substr(piece.at, piece.size);
  }

  // The text of the string between two quotes.
  Result<StringPlace> unescape(std::uint32_t begin, std::uint32_t end) {
    const auto raw = std::string_view(text_).substr(begin, end - begin);
    if (raw.find('\\') == std::string_view::npos) return StringPlace{false, begin, end - begin};
    const std::size_t at = unescaped_.size();
    if (const std::size_t needed = at + raw.size(); needed > unescaped_.capacity()) {
      const std::size_t capacity = std::max(needed, 2 * unescaped_.capacity());
      SL_TRY(charge(capacity - unescaped_.capacity()));
      unescaped_.reserve(capacity);
    }
    if (const auto bad = append_unescaped(unescaped_, raw)) {
      return syntax(simdjson::STRING_ERROR, begin + *bad);
    }
    // The resolved text is never longer than the source, so its offsets also fit into 32 bits.
    return StringPlace{true, static_cast<std::uint32_t>(at),
                       static_cast<std::uint32_t>(unescaped_.size() - at)};
  }

  std::string& text_;
  std::vector<Node>& nodes_;
  std::string& unescaped_;
  std::size_t& values_;
  const ParseLimits& limits_;
  Inside inside_ = Inside::Kept;  // of the root member that the parser reads
};

}  // namespace

Result<Done> parse_nodes(DocumentState& state, const ParseLimits& limits) {
  return Builder(state, limits).run();
}

}  // namespace sightline::json
