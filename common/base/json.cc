// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/json.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <simdjson.h>

#include "common/base/json_nodes.h"

namespace sightline::json {

Document::Document(std::unique_ptr<DocumentState> state) : state_(std::move(state)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::parse(std::string text, const ParseLimits& limits) {
  auto state = std::make_unique<DocumentState>();
  state->text = std::move(text);
  // simdjson reads beyond the end of the text, but only within its padding.
  state->text.reserve(state->text.size() + simdjson::SIMDJSON_PADDING);
  SL_TRY(parse_nodes(*state, limits));
  return Document(std::move(state));
}

const std::string& Document::text() const { return state_->text; }
std::size_t Document::value_count() const { return state_->values; }

std::size_t Document::kept_count() const { return state_->nodes.size(); }

// Copies what stays into a new vector, because only this gives memory back.
std::size_t Document::drop_but(std::span<Value* const> kept) {
  const std::vector<Node>& nodes = state_->nodes;
  std::vector<Node> left = {nodes.front()};
  const auto append = [&](std::uint32_t from, std::uint32_t end) {
    const auto to = static_cast<std::uint32_t>(left.size());
    for (std::uint32_t i = from; i < end; ++i) {
      left.push_back(nodes[i]);
      left.back().next = std::min(nodes[i].next, end) - from + to;
    }
    return to;
  };
  // Members of the root that are kept stay in their place.
  std::vector<std::uint32_t> wanted;
  for (const Value* const value : kept) wanted.push_back(value->index_);
  std::sort(wanted.begin(), wanted.end());
  std::map<std::uint32_t, std::uint32_t> placed;
  for (const Value member : root()) {
    const std::uint32_t at = member.index_;
    const bool stays = std::binary_search(wanted.begin(), wanted.end(), at);
    const std::uint32_t to = append(at, stays ? nodes[at].next : at + 1);
    if (stays) placed[at] = to;
  }
  left.front().next = static_cast<std::uint32_t>(left.size());
  // The other kept values move behind the root's subtree, where no iteration reaches them.
  for (Value* const value : kept) {
    const auto place = placed.find(value->index_);
    value->index_ =
        place != placed.end() ? place->second : append(value->index_, nodes[value->index_].next);
  }
  left.shrink_to_fit();
  // Memory is what the vectors allocated, not what they use.
  const std::size_t before = nodes.capacity();
  state_->nodes = std::move(left);
  return (before - std::min(before, state_->nodes.capacity())) * sizeof(Node);
}

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
  // No early exit: of equal names the last one counts.
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

std::optional<std::vector<std::uint32_t>> unsigned_integers(const Value& array) {
  if (!array.is(Kind::Array)) return std::nullopt;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(array.size());
  // The parser has checked the text. White space, a comma or a bracket follows each number, so
  // reading at `at` stays within the text.
  const std::string_view text = array.raw();
  constexpr std::string_view kBetween = ", \t\r\n";
  for (std::size_t at = text.find_first_not_of(kBetween, 1); text[at] != ']';
       at = text.find_first_not_of(kBetween, at)) {
    std::uint32_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data() + at, end, number);
    if (error != std::errc{}) return std::nullopt;
    at = static_cast<std::size_t>(next - text.data());
    // A fraction or an exponent follows: the number is no integer.
    if (text[at] != ']' && kBetween.find(text[at]) == std::string_view::npos) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace sightline::json
