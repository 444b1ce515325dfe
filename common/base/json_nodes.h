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

// What a Document is made of; for json.cc and json_parser.cc only.
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
  std::size_t values = 0;

  [[nodiscard]] std::string_view piece(bool is_unescaped, std::size_t at, std::size_t size) const {
    return std::string_view(is_unescaped ? unescaped : text).substr(at, size);
  }
};

// Makes the nodes of state.text, behind which there is simdjson's padding. Errors as
// Document::parse().
Result<Done> parse_nodes(DocumentState& state, const ParseLimits& limits);

}  // namespace sightline::json
