// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Feeds messages of an engine's event sockets in any order: frames, sequence numbers, replays,
// losses.
#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/contract/identity_key.h"

#include "router/cache/events/event_feed.h"
#include "router/cache/events/stream.h"
#include "router/cache/index/exact_index.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/support/indexed.h"

namespace sightline::fuzz {
namespace {

constexpr CacheId kEngine{1};
constexpr std::size_t kBufferedMessagesMax = 8;
constexpr std::size_t kBufferedBytesMax = 4096;
constexpr std::size_t kHeldBytesMax = 6000;

events::StreamOptions options_of(std::uint8_t flags, ByteBudget& held) {
  return {.replay_available = (flags & 1U) != 0,
          .buffered_messages_max = kBufferedMessagesMax,
          .buffered_bytes_max = kBufferedBytesMax,
          .held = &held};
}

// Makes the frames of one message: a sequence number near the last one, or arbitrary bytes.
class Frames {
 public:
  std::vector<ByteView> next(Input& input, std::uint8_t form) {
    const auto step = static_cast<std::int8_t>(input.byte());
    sequence_ += static_cast<std::uint64_t>(static_cast<std::int64_t>(step));
    store_be64(number_.data(), form % 8 == 7 ? ~std::uint64_t{0} : sequence_);
    const auto payload = input.sized();
    const ByteView number(number_);
    switch (form % 4) {
      case 0:
        return {topic_, number, payload};
      case 1:
        return {{}, number, payload};
      case 2:
        return {{}, topic_, number, payload};
      default:
        return {payload, number.first(form % 9), {}};
    }
  }

 private:
  std::uint64_t sequence_ = 0;
  std::array<std::uint8_t, 8> number_{};
  Bytes topic_{'k', 'v'};
};

// Checks that the messages to apply follow each other without a hole since the last drop.
class Order {
 public:
  void check(const events::StreamStep& step) {
    if (step.drop) begun_ = false;
    for (const auto& message : step.apply) {
      SL_CHECK(!begun_ || message.sequence == last_ + 1);
      begun_ = true;
      last_ = message.sequence;
    }
  }

 private:
  bool begun_ = false;
  std::uint64_t last_ = 0;
};

// Checks that a replay which was cut short drops nothing and continues from the last message. A
// replay that brought something new must not count as timed out.
events::StreamStep check_cut(events::EventStream& stream,
                             const std::function<events::StreamStep()>& act) {
  const bool progressed = stream.replaying() && stream.replay_progressed();
  const auto timeouts = stream.statistics().replay_timeouts;
  const auto cuts = stream.statistics().replays_cut;
  auto step = act();
  const bool is_cut = stream.statistics().replays_cut > cuts;
  SL_CHECK(!is_cut || (!step.drop && step.replay_from == stream.last_sequence()));
  SL_CHECK(!progressed || stream.statistics().replay_timeouts == timeouts);
  return step;
}

// The next input of the stream, and its variant.
struct Action {
  std::uint8_t kind = 0;
  std::uint8_t form = 0;
};

events::StreamStep step_of(events::EventStream& stream, const Action& action,
                           std::span<const ByteView> frames) {
  const auto [kind, form] = action;
  const bool first = form % 2 == 0;
  if (kind == 6) return form % 4 < 2 ? stream.reconnected(first) : stream.relearn(first);
  if (kind == 7) return stream.replay_ended(true);
  if (kind < 4) {
    auto message = events::parse_live(frames);
    return message.ok() ? stream.live(std::move(*message)) : events::StreamStep{};
  }
  auto answer = events::parse_replay(frames);
  if (!answer.ok()) return {};
  return answer->has_value() ? stream.replayed(std::move(**answer)) : stream.replay_ended(false);
}

void feed_step(events::EventFeed& feed, const Action& action, std::span<const ByteView> frames) {
  const auto [kind, form] = action;
  const bool first = form % 2 == 0;
  if (kind == 6 && form % 4 < 2) {
    feed.reconnected(first, WallTime{});
  } else if (kind == 6) {
    feed.relearn(first, WallTime{});
  } else if (kind == 7) {
    feed.replay_timed_out(WallTime{});
  } else if (kind < 4) {
    feed.live(frames, WallTime{});
  } else {
    feed.replayed(frames, WallTime{});
  }
}

}  // namespace

void run(ByteView bytes) {
  static const keys::Scheme scheme(contract::development_identity_key());
  Input input(bytes);
  const auto flags = input.byte();
  ByteBudget held_by_feed(kHeldBytesMax);
  ByteBudget held(kHeldBytesMax);
  const auto options = options_of(flags, held);
  index::ExactIndex index;
  test::IndexedFeed feed({.id = kEngine, .model = "m"}, options_of(flags, held_by_feed), scheme,
                         index);
  events::EventStream stream(options);
  Order order;
  Frames frames;
  feed.start();
  order.check(stream.start());
  while (!input.at_end()) {
    const auto choice = input.byte();
    const Action action{.kind = static_cast<std::uint8_t>(choice % 8),
                        .form = static_cast<std::uint8_t>(choice / 8)};
    const auto message = frames.next(input, action.form);
    feed_step(feed, action, message);
    const auto act = [&] { return step_of(stream, action, message); };
    order.check(check_cut(stream, act));
    SL_CHECK(held.held() <= kHeldBytesMax && held.held() == held_by_feed.held());
    SL_CHECK(stream.replaying() || held.held() == 0);
    const auto status = feed.status();
    SL_CHECK(status.facts.sequence == stream.last_sequence());
    SL_CHECK(status.replaying == stream.replaying() && status.lag.count() >= 0);
    SL_CHECK(index.blocks(kEngine) <= status.normaliser.blocks_stored);
    SL_CHECK(options.replay_available || !status.replaying);
  }
}

}  // namespace sightline::fuzz
