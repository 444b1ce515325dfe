// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// Prints the router's names for the blocks that a simulated engine holds. Reads one JSON object for
// each line, {"model":"demo","blocks":[…]}, with blocks as /sim/blocks lists them. Writes a JSON
// array for each line: the digest of each block under the development identity key, as GET
// /v1/index writes them.
// A block's parent may come later in the same line, or in an earlier one. A block whose parent
// never came gives null.
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/contract/identity_key.h"

#include "router/cache/keys/block_key.h"

namespace sightline {
namespace {

struct Block {
  std::optional<std::string> parent;
  std::vector<TokenId> tokens;
  std::vector<keys::BlockMedia> media;
  std::optional<std::string> lora;
  std::optional<std::string> cache_salt;
  std::optional<keys::BlockKey> key;  // if known
};

std::optional<std::string> text_of(const json::Value& object, std::string_view name) {
  const auto member = object.find(name);
  const auto text = member ? member->string() : std::nullopt;
  if (!text) return std::nullopt;
  return std::string(*text);
}

Block read_block(const json::Value& value) {
  Block block{.parent = text_of(value, "parent"),
              .tokens = {},
              .media = {},
              .lora = text_of(value, "lora"),
              .cache_salt = text_of(value, "cache_salt"),
              .key = {}};
  const auto tokens = value.find("tokens");
  for (const json::Value token : *tokens) {
    block.tokens.push_back(static_cast<TokenId>(*token.integer()));
  }
  const auto media = value.find("media");
  for (const json::Value item : *media) {
    auto part = item.begin();
    const keys::IdentifierHash id = keys::identifier_hash(*(*part).string());
    ++part;
    block.media.push_back({.id = id, .offset = static_cast<std::int32_t>(*(*part).integer())});
  }
  return block;
}

class Namer {
 public:
  std::string answer(const json::Value& line) {
    const std::string model = text_of(line, "model").value_or("");
    std::vector<std::string> names;
    const auto blocks = line.find("blocks");
    for (const json::Value value : *blocks) {
      names.push_back(*text_of(value, "hash"));
      blocks_.try_emplace(names.back(), read_block(value));
    }
    std::string out = "[";
    for (const std::string& name : names) {
      const auto key = key_of(model, name);
      out += out.size() > 1 ? "," : "";
      out += key ? '"' + scheme_.digest(*key) + '"' : "null";
    }
    return out + "]";
  }

 private:
  std::optional<keys::BlockKey> key_of(const std::string& model, const std::string& name) {
    // Up to the first ancestor with a known key, then down again.
    std::vector<Block*> chain;
    std::optional<keys::BlockKey> parent;
    std::optional<std::string> next = name;
    while (next) {
      const auto found = blocks_.find(*next);
      if (found == blocks_.end()) return std::nullopt;
      parent = found->second.key;
      if (parent) break;
      chain.push_back(&found->second);
      next = found->second.parent;
    }
    while (!chain.empty()) {
      Block& block = *chain.back();
      chain.pop_back();
      if (!parent) {
        parent = scheme_.root({.model = model, .cache_salt = block.cache_salt, .lora = block.lora});
      }
      block.key = parent = scheme_.next(*parent, scheme_.local(block.tokens, block.media));
    }
    return parent;
  }

  const keys::Scheme scheme_{contract::development_identity_key()};
  std::map<std::string, Block> blocks_;  // all listed ones, by the engine's hash
};

int run() {
  Namer namer;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto document = json::Document::parse(line, {.depth_max = 16, .values_max = 100'000'000});
    if (!document.ok()) {
      std::fprintf(stderr, "block_digests: %s\n", document.error().message.c_str());
      return 1;
    }
    std::cout << namer.answer(document->root()) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace sightline

int main() { return sightline::run(); }
