// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/expansion.h"

#include <deque>
#include <map>

namespace sightline::processor {
namespace {

Error left_over() {
  return client_error(ErrorCode::InvalidArgument,
                      "Failed to apply prompt replacement for mm_items['image']: the number of "
                      "placeholders differs from the number of items.");
}

}  // namespace

Result<ExpandedPrompt> expand(const std::vector<TokenId>& rendered, const std::vector<Item>& items,
                              const std::vector<TokenId>& placeholders) {
  // The unused items of each placeholder.
  std::map<TokenId, std::deque<std::size_t>> waiting;
  for (const TokenId placeholder : placeholders) waiting[placeholder] = {};
  for (std::size_t i = 0; i < items.size(); ++i) waiting[items[i].placeholder].push_back(i);
  ExpandedPrompt prompt;
  for (const TokenId token : rendered) {
    const auto queue = waiting.find(token);
    if (queue == waiting.end()) {
      prompt.tokens.push_back(token);
      continue;
    }
    if (queue->second.empty()) return left_over();
    const std::size_t item = queue->second.front();
    queue->second.pop_front();
    prompt.runs.push_back({item, prompt.tokens.size(), items[item].tokens});
    for (std::size_t i = 0; i < items[item].tokens; ++i) prompt.tokens.push_back(token);
  }
  for (const auto& [placeholder, queue] : waiting) {
    if (!queue.empty()) return left_over();
  }
  return prompt;
}

}  // namespace sightline::processor
