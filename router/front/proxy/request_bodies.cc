// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/request_bodies.h"

#include <cstddef>
#include <string>
#include <utility>

#include "common/base/memory_ledger.h"
#include "common/contract/metrics_requests.h"
#include "common/runtime/io_pool.h"

#include "router/engine/families/families.h"

namespace sightline::proxy {
namespace {

constexpr std::size_t base64_bytes(std::size_t bytes) { return (bytes + 2) / 3 * 4; }

}  // namespace

bool RequestBodies::asks_for_usage() const {
  return request_.stream && !request_.include_usage &&
         settings_->audit.usage == contract::AuditUsage::Inject;
}

Task<Result<Done>> RequestBodies::edit(const fleet::Served& served, Requester& requester) {
  std::size_t bytes = 0;
  for (const prepare::ResolvedMedia& item : prepared_.media) {
    services_.metrics.counter(contract::kMediaItemsTotal, {item.outcome}).add();
    bytes += item.fetched ? item.fetched->size() : 0;
  }
  // Each family has a body of its own, and each body has a copy of the images.
  // The memory is reserved before the large texts are built.
  const std::size_t written = base64_bytes(bytes) * served.families.size();
  if (!requester.memory.add(written)) {
    co_return memory_error(requester.memory, written, "the base64 text of the request's images");
  }
  auto work = [&]() -> Result<Done> {
    for (const auto family : served.families) bodies_.emplace(family, edited(family));
    return Done{};
  };
  auto done = co_await offload(services_.pool, bytes, requester.left, std::move(work));
  co_return done;
}

openai::EditedBody RequestBodies::edited(contract::EngineFamily family) const {
  openai::EditedBody body(request_.document.text());
  // With media.forward=url the engine downloads the image itself.
  const bool as_bytes = settings_->media.forward == contract::MediaForward::Bytes;
  std::vector<std::string> identifiers;
  for (std::size_t i = 0; i < prepared_.media.size(); ++i) {
    const prepare::ResolvedMedia& item = prepared_.media[i];
    identifiers.push_back(item.identifier);
    if (item.fetched && as_bytes) {
      openai::set_url(body, request_.chat()->media[i], prepare::data_url_of(item));
    }
  }
  families::family_of(family).edit(body, request_, identifiers);
  if (asks_for_usage()) openai::ask_for_usage(body, request_);
  return body;
}

std::vector<std::string_view> RequestBodies::pieces_for(contract::EngineFamily family) {
  auto body = bodies_.find(family);
  // The first worker of this family has joined after edit().
  if (body == bodies_.end()) body = bodies_.emplace(family, edited(family)).first;
  return body->second.pieces();
}

Task<Result<openai::EditedBody>> edit_unread(const Deps& services,
                                             const openai::UnreadRequest& request,
                                             const prepare::Downloads& downloads,
                                             Requester& requester) {
  const bool as_bytes = services.settings.read()->media.forward == contract::MediaForward::Bytes;
  std::size_t bytes = 0;
  for (const auto& download : downloads) bytes += download ? download->size() : 0;
  const std::size_t written = base64_bytes(bytes);
  if (!requester.memory.add(written)) {
    co_return memory_error(requester.memory, written, "the base64 text of the request's media");
  }
  auto work = [&]() -> Result<openai::EditedBody> {
    openai::EditedBody body(request.text());
    // Removes or replaces the members that clients may not use.
    for (const auto& fix : request.fixes) {
      body.replace(fix.old.begin_offset(), fix.old.end_offset(), std::string(fix.value));
    }
    for (std::size_t i = 0; i < downloads.size(); ++i) {
      if (!downloads[i] || !as_bytes) continue;
      openai::set_url(body, request.media[i], prepare::data_url_of(ByteView(*downloads[i])));
    }
    return body;
  };
  auto edited = co_await offload(services.pool, bytes, requester.left, std::move(work));
  co_return edited;
}

}  // namespace sightline::proxy
