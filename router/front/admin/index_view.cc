// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/index_view.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/json.h"

#include "router/cache/operations/operation.h"

namespace sightline::admin {
namespace {

std::string digests_json(const IndexView& view, CacheId cache) {
  std::string digests = "[";
  for (const keys::BlockKey key : view.index.held(cache, operations::Tier::Gpu)) {
    digests += (digests.size() == 1 ? "\"" : ",\"") + view.scheme.digest(key) + '"';
  }
  digests += ']';
  return digests;
}

bool is_believed(const fleet::Worker& worker, CacheId cache) {
  const fleet::Rank* rank = worker.find(cache);
  return rank != nullptr && worker.is_precise(*rank);
}

}  // namespace

admin_port::AdminResponse IndexView::run(const admin_port::AdminRequest& request) const {
  const std::string* const name = request.find("worker");
  if (name == nullptr) {
    return admin_port::admin_error(400, "name a worker: /v1/index?worker=NAME");
  }
  const auto worker = fleet.snapshot()->find(*name);
  if (!worker) return admin_port::admin_error(404, "no worker has this name. See /v1/workers");
  std::uint64_t blocks = 0;
  for (const fleet::Rank& rank : worker->ranks) {
    if (rank.feed) blocks += index.blocks(rank.feed->cache);
  }
  // Checked before the answer is built, because it may need much memory.
  if (blocks > kListedBlocksMax) {
    return admin_port::admin_error(413, "the worker holds " + std::to_string(blocks) +
                                            " blocks, but at most " +
                                            std::to_string(kListedBlocksMax) + " can be listed");
  }
  std::vector<std::string> digests;
  for (const fleet::Rank& rank : worker->ranks) {
    digests.push_back(rank.feed ? digests_json(*this, rank.feed->cache) : "");
  }
  // Read after the blocks. A worker that was ready before and after was ready in between.
  const auto after = fleet.snapshot()->find(*name);
  const auto& latest = after ? *after : *worker;
  const bool ready = worker->is_precise() && latest.is_precise();
  std::string ranks;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const fleet::Rank& rank = worker->ranks[i];
    if (!rank.feed) continue;
    const CacheId cache = rank.feed->cache;
    const bool counts = is_believed(*worker, cache) && is_believed(latest, cache);
    ranks += std::string(ranks.empty() ? "" : ",") + R"({"rank":)" + std::to_string(rank.number) +
             R"(,"counts":)" + (counts ? "true" : "false") + R"(,"blocks":)" + digests[i] + "}";
  }
  return {.status = 200,
          .body = R"({"worker":)" + json::to_quoted(latest.spec.name) + R"(,"state":)" +
                  json::to_quoted(name_of(latest.state)) + R"(,"counts":)" +
                  (ready ? "true" : "false") + R"(,"block_size":)" +
                  std::to_string(latest.block_size.tokens()) + R"(,"ranks":[)" + ranks + "]}"};
}

}  // namespace sightline::admin
