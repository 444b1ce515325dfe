// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

// The parts of a Document, for json.cc and json_parser.cc only.
namespace sightline::json {

// One value. Nodes lie in depth-first order: the first child of a container is the next node, and
// `next` is the index after the whole subtree. Nodes are small because a text of two bytes a value
// makes one node a value. Offsets count bytes of the text, or of the unescaped texts.
struct Node {
  Kind kind = Kind::Null;
  bool boolean = false;
  bool is_text_unescaped = false;
  bool is_name_unescaped = false;
  std::uint32_t next = 0;
  // Of a container: its members. Of a string: its bytes from text_at on.
  std::uint32_t size = 0;
  std::uint32_t text_at = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t name_begin = 0;
  std::uint32_t name_at = 0;
  std::uint32_t name_size = 0;
};
static_assert(sizeof(Node) == 36);

// The state of a Document. It is on the heap, so a move of the Document keeps Values valid.
struct DocumentState {
  std::string text;
  std::vector<Node> nodes;
  // The strings that have escapes, resolved, one after the other.
  std::string unescaped;
  // All values of the text, dropped ones included.
  std::size_t values = 0;

  // A piece of `unescaped` or of `text`.
  [[nodiscard]] std::string_view piece(bool is_unescaped, std::size_t at, std::size_t size) const {
    return std::string_view(is_unescaped ? unescaped : text).substr(at, size);
  }
};

// Makes the nodes of state.text. The text has SIMDJSON_PADDING bytes of spare capacity, which the
// parser reads. Errors: see Document::parse().
Result<Done> parse_nodes(DocumentState& state, const ParseLimits& limits);

}  // namespace sightline::json
