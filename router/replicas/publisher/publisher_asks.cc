// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// The requests of routers to an agent.
#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "router/replicas/frames/stream_codec.h"
#include "router/replicas/publisher/frame_publisher.h"

namespace sightline::publisher {

using frames::NotAvailable;

void FramePublisher::hear(const frames::Message& message, Instant now) {
  now_ = now;
  // The subject is that of this stream. Another name inside is a mistake or an attack.
  if (message.stream != stream_) {
    ++statistics_.asks_foreign;
    return;
  }
  std::visit([&](const auto& body) { hear_body(body, now); }, message.body);
}

void FramePublisher::hear_body(const frames::StreamQuestion& question, Instant now) {
  if (!admit(question.reader, question.freshness, now)) return;
  // A look costs the engine work. Only a question that names this stream gets it: a recorded
  // question from before its start cannot cause it.
  const bool may_look = question.look && question.freshness.agent == agent_.number;
  if (!may_look || !is_proved() || looks_.size() >= options_.looks_max) {
    return answer(question, now);
  }
  is_look_wished_ = true;
  looks_.push_back({.question = question, .asked_at = now});
}

void FramePublisher::hear_body(const frames::RangeAsk& ask, Instant now) {
  if (!admit_of_this_stream(ask, now) || refuse_other_epoch(ask.reader, ask.epoch)) return;
  const std::uint64_t from = std::max<std::uint64_t>(ask.from, 1);
  const std::uint64_t to = std::min(ask.to, ring_.last());
  // The router asks for positions that do not exist.
  if (from > to) {
    ++statistics_.asks_foreign;
    return;
  }
  std::size_t bytes = 0;
  // A range above range_bytes_max is refused before its first frame is sent. A dump is shorter
  // then.
  bool is_gone = from < ring_.first();
  for (std::uint64_t seq = from; seq <= to && !is_gone; ++seq) {
    bytes += ring_.at(seq).size();
    is_gone = bytes > options_.range_bytes_max;
  }
  if (is_gone) {
    ++statistics_.ranges_gone;
    return reply(ask.reader,
                 NotAvailable{.what = NotAvailable::MissingPart::Range, .id = ask.epoch});
  }
  ++statistics_.ranges;
  for (std::uint64_t seq = from; seq <= to; ++seq) {
    send_to({.reader = ask.reader, .payload = ring_.at(seq)});
  }
}

void FramePublisher::hear_body(const frames::DumpAsk& ask, Instant now) {
  if (!admit_of_this_stream(ask, now) || refuse_other_epoch(ask.reader, ask.epoch)) return;
  switch (dumps_.ask(ask.reader, ring_.first(), now)) {
    case Dumps::DumpRequestResult::Given:
      return reply(ask.reader, dumps_.newest_offer());
    case Dumps::DumpRequestResult::Waiting:
      return;
    case Dumps::DumpRequestResult::ToBegin:
      return begin_dump();
    case Dumps::DumpRequestResult::Refused:
      ++statistics_.asks_refused;
      return;
  }
}

void FramePublisher::hear_body(const frames::ChunkAsk& ask, Instant now) {
  if (!admit_of_this_stream(ask, now)) return;
  const auto* chunks = dumps_.chunks(ask.dump, now);
  // Chunks of a dropped dump cannot be made again: the cache has changed since.
  if (chunks == nullptr) {
    ++statistics_.dumps_gone;
    return reply(ask.reader, NotAvailable{.what = NotAvailable::MissingPart::Dump, .id = ask.dump});
  }
  for (const std::uint32_t chunk : ask.chunks) {
    if (chunk >= chunks->size()) {
      ++statistics_.asks_foreign;
      continue;
    }
    ++statistics_.chunks;
    send_to({.reader = ask.reader, .payload = (*chunks)[chunk]});
  }
}

void FramePublisher::hear_body(const frames::RelearnAsk& ask, Instant now) {
  if (!admit_of_this_stream(ask, now)) return;
  // Only a request about the present epoch counts. The blocks of an earlier one are gone already.
  if (epoch_ == ask.epoch && relearn_.ask(now)) ++statistics_.relearns;
}

void FramePublisher::step(Instant now) {
  now_ = now;
  if (!dumps_.is_making()) return;
  switch (dumps_.step(held_, now)) {
    case Dumps::Stepped::More:
      return;
    case Dumps::Stepped::Made:
      ++statistics_.dumps;
      for (const auto& reader : dumps_.take_waiting()) reply(reader, dumps_.newest_offer());
      return;
    case Dumps::Stepped::ToBegin:
      ++statistics_.dumps_anew;
      return begin_dump();
  }
}

bool FramePublisher::admit(const std::string& reader, const frames::Freshness& freshness,
                           Instant now) {
  using AskVerdict = ReaderLimits::AskVerdict;
  const bool names_stream = freshness.agent == agent_.number;
  // Replies go to the reader's name, so a request without one is useless.
  const auto verdict = reader.empty()
                           ? AskVerdict::TooMany
                           : limits_.admit({reader, freshness.number, names_stream}, now);
  if (verdict == AskVerdict::Repeated) ++statistics_.asks_repeated;
  if (verdict == AskVerdict::TooMany) ++statistics_.asks_refused;
  return verdict == AskVerdict::Admitted;
}

bool FramePublisher::refuse_other_epoch(const std::string& reader, std::uint64_t epoch) {
  if (epoch_ == epoch) return false;
  ++statistics_.epochs_gone;
  reply(reader, NotAvailable{.what = NotAvailable::MissingPart::Epoch, .id = epoch});
  return true;
}

// Operations that are pending belong to no position yet. They are written first, so the state is
// that of the last position.
void FramePublisher::answer(const frames::StreamQuestion& question, Instant now) {
  flush(false);
  frames::StreamAnswer answer;
  answer.nonce = question.nonce;
  answer.agent = agent_;
  answer.epoch = epoch_;
  answer.seq = epoch_ ? ring_.last() : 0;
  answer.state = beat();
  if (facts_.caught_up) {
    // Rounded up: the router must not assume that more is applied than is.
    const auto ago = std::chrono::ceil<std::chrono::milliseconds>(now - *facts_.caught_up);
    answer.caught_up_ago = std::max(ago, std::chrono::milliseconds(0));
  }
  ++statistics_.questions;
  send_to({.reader = question.reader,
           .payload = frames::encode({.stream = stream_, .body = std::move(answer)}),
           .is_in_order = true});
}

void FramePublisher::answer_looks(Instant now) {
  std::erase_if(looks_, [&](const Look& look) {
    // All that the engine announced before the question is applied.
    const bool is_looked = facts_.caught_up && *facts_.caught_up >= look.asked_at;
    const bool is_over = is_looked || !is_proved() || now - look.asked_at >= options_.look_for;
    if (is_over) answer(look.question, now);
    return is_over;
  });
}

void FramePublisher::begin_dump() {
  // The dump begins at a position, so operations that are pending must be in a frame first.
  flush(false);
  dumps_.begin(held_, *epoch_, ring_.last());
}

void FramePublisher::reply(const std::string& reader, frames::Body body) {
  send_to(
      {.reader = reader, .payload = frames::encode({.stream = stream_, .body = std::move(body)})});
}

void FramePublisher::send_to(Outgoing message) {
  // A slow NATS must not grow the agent's memory. The router asks again.
  if (replies_bytes_ + message.payload.size() > options_.replies_bytes_max) {
    ++statistics_.replies_refused;
    return;
  }
  replies_bytes_ += message.payload.size();
  limits_.charge(message.reader, message.payload.size());
  out_.push_back(std::move(message));
}

}  // namespace sightline::publisher
