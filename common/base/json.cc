// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/json.h"

#include <charconv>
#include <limits>

#include <simdjson.h>

#include "common/base/json_strings.h"

namespace sightline::json {

// Nodes lie in depth-first order: the first child of a container is the next node, and next is
// the index after the whole subtree. A text of two bytes a value becomes a document of one node a
// value, so nodes are small; offsets are those of the text, or of the unescaped texts.
struct Node {
  Kind kind = Kind::Null;
  bool boolean = false;
  bool is_text_unescaped = false;
  bool is_name_unescaped = false;
  std::uint32_t next = 0;
  std::uint32_t size = 0;  // of containers: members; of strings: bytes from text_at on
  std::uint32_t text_at = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t name_begin = 0;
  std::uint32_t name_at = 0;
  std::uint32_t name_size = 0;
};
static_assert(sizeof(Node) == 36);

struct DocumentState {
  std::string text;
  std::vector<Node> nodes;
  std::string unescaped;  // strings with escapes, one after the other

  [[nodiscard]] std::string_view piece(bool is_unescaped, std::size_t at, std::size_t size) const {
    return std::string_view(is_unescaped ? unescaped : text).substr(at, size);
  }
};

namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;

// A parser takes up to six bytes of memory for a byte of text. Those of longer texts are not kept.
constexpr std::size_t kKeptParserTextBytes = 1U << 20U;

// Turns simdjson's forward-only cursor into nodes, keeping source positions.
class Builder {
 public:
  Builder(DocumentState& state, const ParseLimits& limits)
      : text_(state.text), nodes_(state.nodes), unescaped_(state.unescaped), limits_(limits) {}

  Result<Done> run() {
    if (text_.size() > std::numeric_limits<std::uint32_t>::max())
      return too_large("bytes", std::numeric_limits<std::uint32_t>::max());
    static thread_local od::parser kept;
    od::parser used_once;
    od::parser& parser = text_.size() > kKeptParserTextBytes ? used_once : kept;
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

  // A token reaches up to the next token: cut the white space between them.
  std::uint32_t token_end(std::string_view token) const {
    std::size_t size = token.size();
    while (size > 0 && static_cast<unsigned char>(token[size - 1]) <= ' ') --size;
    return offset_of(token.data() + size);
  }

  Result<Done> add(od::value& value, std::size_t depth) {
    if (depth > limits_.depth_max) return too_large("depth", limits_.depth_max);
    if (nodes_.size() >= limits_.values_max) return too_large("values", limits_.values_max);
    od::json_type type{};
    const std::string_view token = value.raw_json_token();
    const std::uint32_t begin = offset_of(token.data());
    if (const auto error = value.type().get(type)) return syntax(error, begin);
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(Node{});
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

  // These limits are fixed: no setting changes them.
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
    for (auto field_result : object) {
      od::field field;
      if (const auto error = std::move(field_result).get(field)) {
        return syntax(error, begin_of(index));
      }
      const char* raw_key = field.key().raw();
      const Piece name = SL_TRY(name_at(raw_key));
      od::value member = field.value();
      const auto child = static_cast<std::uint32_t>(nodes_.size());
      SL_TRY(add(member, depth + 1));
      nodes_[child].is_name_unescaped = name.is_unescaped;
      nodes_[child].name_at = name.at;
      nodes_[child].name_size = name.size;
      nodes_[child].name_begin = offset_of(raw_key) - 1;
      ++nodes_[index].size;
    }
    close(index, '}');
    return Done{};
  }

  Result<Done> add_array(od::value& value, std::uint32_t index, std::size_t depth) {
    nodes_[index].kind = Kind::Array;
    od::array array;
    if (const auto error = value.get_array().get(array)) return syntax(error, begin_of(index));
    for (auto element_result : array) {
      od::value element;
      if (const auto error = std::move(element_result).get(element)) {
        return syntax(error, begin_of(index));
      }
      SL_TRY(add(element, depth + 1));
      ++nodes_[index].size;
    }
    close(index, ']');
    return Done{};
  }

  std::size_t begin_of(std::uint32_t index) const { return nodes_[index].begin; }

  // The bracket follows the last child, or the opening bracket, with white space between.
  void close(std::uint32_t index, char bracket) {
    std::uint32_t end = nodes_[index].begin + 1;
    if (nodes_.size() > index + 1) end = last_child_end(index);
    while (text_[end] != bracket) ++end;
    nodes_[index].end = end + 1;
  }

  std::uint32_t last_child_end(std::uint32_t index) const {
    std::uint32_t child = index + 1;
    while (nodes_[child].next < nodes_.size()) child = nodes_[child].next;
    return nodes_[child].end;
  }

  Result<Done> add_scalar(od::value& value, od::json_type type, Node& node) {
    switch (type) {
      case od::json_type::string: {
        node.kind = Kind::String;
        // Not skipped: simdjson would take a ':' behind it for that of a member and skip on.
        if (const auto error = value.get_raw_json_string().error()) {
          return syntax(error, node.begin);
        }
        const Piece text = SL_TRY(unescape(node.begin + 1, node.end - 1));
        node.is_text_unescaped = text.is_unescaped;
        node.text_at = text.at;
        node.size = text.size;
        return Done{};
      }
      case od::json_type::number: {
        node.kind = Kind::Number;
        double number = 0;
        if (const auto error = value.get_double().get(number)) return syntax(error, node.begin);
        return Done{};
      }
      case od::json_type::boolean: {
        node.kind = Kind::Bool;
        if (const auto error = value.get_bool().get(node.boolean)) return syntax(error, node.begin);
        return Done{};
      }
      default:
        // Read as a result: its conversion to bool would throw on a malformed null.
        bool is_null = false;
        if (const auto error = value.is_null().get(is_null)) return syntax(error, node.begin);
        return Done{};
    }
  }

  // Where a string's own text is.
  struct Piece {
    bool is_unescaped = false;
    std::uint32_t at = 0;
    std::uint32_t size = 0;
  };

  Result<Piece> name_at(const char* raw_key) {
    const std::uint32_t begin = offset_of(raw_key);
    std::uint32_t end = begin;
    while (text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    return unescape(begin, end);
  }

  // Of the string between two quotes.
  Result<Piece> unescape(std::uint32_t begin, std::uint32_t end) {
    const auto raw = std::string_view(text_).substr(begin, end - begin);
    if (raw.find('\\') == std::string_view::npos) return Piece{false, begin, end - begin};
    const std::size_t at = unescaped_.size();
    if (const auto bad = append_unescaped(unescaped_, raw)) {
      return syntax(simdjson::STRING_ERROR, begin + *bad);
    }
    // No longer than the text, so it fits as well.
    return Piece{true, static_cast<std::uint32_t>(at),
                 static_cast<std::uint32_t>(unescaped_.size() - at)};
  }

  std::string& text_;
  std::vector<Node>& nodes_;
  std::string& unescaped_;
  const ParseLimits& limits_;
};

}  // namespace

Document::Document(std::unique_ptr<DocumentState> state) : state_(std::move(state)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::parse(std::string text, const ParseLimits& limits) {
  auto state = std::make_unique<DocumentState>();
  state->text = std::move(text);
  state->text.reserve(state->text.size() + simdjson::SIMDJSON_PADDING);
  SL_TRY(Builder(*state, limits).run());
  return Document(std::move(state));
}

const std::string& Document::text() const { return state_->text; }
std::size_t Document::value_count() const { return state_->nodes.size(); }

const Node& Value::node() const { return document_->nodes[index_]; }
Kind Value::kind() const { return node().kind; }

std::optional<bool> Value::boolean() const {
  if (kind() != Kind::Bool) return std::nullopt;
  return node().boolean;
}

std::optional<std::int64_t> Value::integer() const {
  if (kind() != Kind::Number) return std::nullopt;
  const std::string_view text = raw();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> Value::number() const {
  if (kind() != Kind::Number) return std::nullopt;
  const std::string_view text = raw();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string_view> Value::string() const {
  if (kind() != Kind::String) return std::nullopt;
  return document_->piece(node().is_text_unescaped, node().text_at, node().size);
}

std::size_t Value::size() const {
  const bool container = kind() == Kind::Array || kind() == Kind::Object;
  return container ? node().size : 0;
}

std::optional<Value> Value::find(std::string_view name) const {
  std::optional<Value> found;
  if (kind() != Kind::Object) return found;
  for (const Value member : *this) {
    if (member.name() == name) found = member;
  }
  return found;
}

std::vector<Value> Value::find_all(std::string_view name) const {
  std::vector<Value> found;
  if (kind() != Kind::Object) return found;
  for (const Value member : *this) {
    if (member.name() == name) found.push_back(member);
  }
  return found;
}

std::string_view Value::name() const {
  return document_->piece(node().is_name_unescaped, node().name_at, node().name_size);
}
std::size_t Value::begin_offset() const { return node().begin; }
std::size_t Value::end_offset() const { return node().end; }
std::size_t Value::name_offset() const { return node().name_begin; }

std::string_view Value::raw() const {
  return std::string_view(document_->text).substr(node().begin, node().end - node().begin);
}

Value::Iterator Value::begin() const {
  const bool container = kind() == Kind::Array || kind() == Kind::Object;
  return {document_, container ? index_ + 1 : node().next};
}
Value::Iterator Value::end() const { return {document_, node().next}; }

Value::Iterator& Value::Iterator::operator++() {
  index_ = document_->nodes[index_].next;
  return *this;
}

}  // namespace sightline::json
