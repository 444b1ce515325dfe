// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Decodes one opened message of a replica or an agent.
#include <string>

#include "common/base/check.h"

#include "router/replicas/frames/stream_codec.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {

namespace {

void check_size(const std::vector<operations::Operation>& operations, std::size_t bytes) {
  std::size_t keys = 0;
  for (const auto& operation : operations) {
    if (const auto* store = std::get_if<operations::Store>(&operation)) keys += store->keys.size();
    if (const auto* remove = std::get_if<operations::Remove>(&operation)) {
      keys += remove->keys.size();
    }
  }
  SL_CHECK(operations.size() + keys * frames::kKeyBytes <= bytes);
}

}  // namespace

void run(ByteView bytes) {
  // A copy of its own size lets a sanitizer detect a read behind its end.
  const Bytes copy(bytes.begin(), bytes.end());
  const auto message = frames::decode(text_of(copy));
  if (!message.ok()) {
    SL_CHECK(message.error().blame == Blame::Worker);
    return;
  }
  if (const auto* frame = std::get_if<frames::Frame>(&message->body)) {
    check_size(frame->operations, copy.size());
  }
  if (const auto* chunk = std::get_if<frames::DumpChunk>(&message->body)) {
    check_size(chunk->operations, copy.size());
  }
  // A message has one meaning: an encoded copy decodes to the same value.
  const auto again = frames::decode(frames::encode(*message));
  SL_CHECK(again.ok() && *again == *message);
}

}  // namespace sightline::fuzz
