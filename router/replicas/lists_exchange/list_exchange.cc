// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/lists_exchange/list_exchange.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sightline::lists_exchange {

ListExchange::ListExchange(std::uint64_t own_instance, std::uint64_t seed, Instant now,
                           ListExchangeOptions options)
    : own_instance_(own_instance),
      options_(options),
      began_(now),
      nonces_(seed),
      first_until_(now + options.first_list),
      retry_(options.pause) {}

void ListExchange::connected(Instant now) {
  // The wait for answers begins when a question can be sent. Without this, a slow connection would
  // use up the whole time.
  if (!std::exchange(is_connected_, true) && is_first()) {
    first_until_ = std::min(*first_until_, now + options_.first_answers);
  }
  next_ask_ = now;
}

void ListExchange::announced(const std::set<std::uint64_t>& generations, Instant now) {
  std::set<std::uint64_t> higher(generations.upper_bound(own_.generation), generations.end());
  const bool is_news =
      !std::includes(announced_.begin(), announced_.end(), higher.begin(), higher.end());
  announced_ = std::move(higher);
  if (!is_news) return;
  retry_ = options_.pause;
  // Not sooner than the least pause after the last question, no matter how many peers announce.
  next_ask_ = std::min(next_ask_, open_ ? std::max(now, open_->asked_at + options_.pause) : now);
}

void ListExchange::hear(Message message, Instant now) {
  if (const auto* ask = std::get_if<ListAsk>(&message)) return hear_ask(*ask, now);
  if (const auto* held = std::get_if<ListReply>(&message)) return hear_held(*held, now);
  hear_part(std::move(std::get<ListChunk>(message)), now);
}

// An asker that was dropped from the table may get one question answered a second time.
bool ListExchange::note_ask(const ListAsk& ask) {
  std::uint64_t& newest = askers_[ask.asker];
  if (ask.number <= newest) {
    ++next_.repeated;
    return false;
  }
  newest = ask.number;
  while (askers_.size() > options_.askers_max) {
    // The table is full. The entry that was just made stays.
    const bool is_first = askers_.begin()->first == ask.asker;
    askers_.erase(is_first ? std::next(askers_.begin()) : askers_.begin());
  }
  return true;
}

// Recorded questions can be sent again without limit, and a part is long.
bool ListExchange::spend_answer(bool is_part, Instant now) {
  if (now >= second_ + std::chrono::seconds(1)) {
    second_ = now;
    held_answers_ = part_answers_ = 0;
  }
  std::uint32_t& count = is_part ? part_answers_ : held_answers_;
  const std::uint32_t most = is_part ? options_.part_answers_max : options_.held_answers_max;
  if (count == most) {
    ++next_.unanswered;
    return false;
  }
  ++count;
  return true;
}

void ListExchange::hear_ask(const ListAsk& ask, Instant now) {
  if (ask.asker == own_instance_ || ask.asker == 0 || !note_ask(ask)) return;
  const std::size_t bytes = own_.body ? own_.body->size() : 0;
  if (ask.of == 0) {
    if (!spend_answer(false, now)) return;
    next_.answers.push_back({ask.asker, ListReply{own_instance_, ask.nonce, own_.generation,
                                                  own_.digest, static_cast<std::uint32_t>(bytes)}});
    return;
  }
  // The list may have changed since the answer that named it.
  const bool has_it = ask.generation == own_.generation && ask.offset < bytes;
  if (ask.of != own_instance_ || !has_it || !spend_answer(true, now)) return;
  next_.answers.push_back(
      {ask.asker, ListChunk{own_instance_, ask.nonce, own_.generation, ask.offset,
                            own_.body->substr(ask.offset, part_bytes_max_)}});
}

void ListExchange::set_part_bytes_max(std::size_t bytes) {
  part_bytes_max_ = std::clamp<std::size_t>(bytes, 1, kPartBytesMax);
}

void ListExchange::hear_held(const ListReply& held, Instant now) {
  // A late answer may be older than a push in the meantime.
  const bool counts =
      open_ && held.nonce == open_->nonce && now < open_->asked_at + options_.answer_time;
  if (!counts || held.instance == own_instance_) return;
  // Two lists with one generation are a mistake of the operator. No router can decide which one is
  // right.
  if (held.generation != 0 && held.generation == own_.generation && held.digest != own_.digest) {
    next_.forked = held.instance;
  }
  const std::uint64_t best = std::max(own_.generation, pull_ ? pull_->of.generation : 0);
  // An empty or too large list cannot be a pushed one.
  const bool is_possible = held.bytes > 0 && held.bytes <= options_.list_bytes_max;
  if (held.generation <= best || !is_possible) return;
  pull_ = Pull{.of = held, .body = {}, .ask = {}, .tries = 0};
  ask_part(now);
}

void ListExchange::hear_part(ListChunk part, Instant now) {
  if (!pull_ || part.nonce != pull_->ask.nonce || part.instance != pull_->of.instance) return;
  const std::size_t left = pull_->of.bytes - pull_->body.size();
  // Parts come in order, because each is requested after the one before.
  const bool fits = part.generation == pull_->of.generation && part.offset == pull_->body.size() &&
                    part.bytes.size() <= left;
  if (!fits) return give_up_pull(now);
  pull_->body += part.bytes;
  pull_->tries = 0;
  if (pull_->body.size() < pull_->of.bytes) return ask_part(now);
  next_.list = std::move(pull_->body);
  pull_.reset();
  end_first(false);
}

void ListExchange::ask_all(Instant now) {
  open_ = Open{nonces_.next(), now};
  next_.asks.push_back({.asker = own_instance_, .nonce = open_->nonce, .number = ++asked_});
  next_ask_ = now + (is_first() ? options_.first_asks : options_.asks);
  if (is_first() || announced_.empty()) return;
  next_ask_ = now + retry_;
  retry_ = std::min(2 * retry_, options_.asks);
}

void ListExchange::ask_part(Instant now) {
  pull_->ask = {nonces_.next(), now};
  ++pull_->tries;
  next_.asks.push_back({.asker = own_instance_,
                        .nonce = pull_->ask.nonce,
                        .of = pull_->of.instance,
                        .generation = pull_->of.generation,
                        .offset = static_cast<std::uint32_t>(pull_->body.size()),
                        .number = ++asked_});
}

void ListExchange::give_up_pull(Instant now) {
  pull_.reset();
  announced_.clear();  // another peer may have it
  next_ask_ = std::min(next_ask_, now + (is_first() ? options_.first_asks : options_.pause));
}

void ListExchange::end_first(bool does_without) {
  if (!is_first()) return;
  first_until_.reset();
  next_.does_without = does_without;
}

ListExchange::Actions ListExchange::turn(Instant now) {
  if (pull_ && now >= pull_->ask.asked_at + options_.part_time) {
    if (pull_->tries < options_.part_tries) {
      ask_part(now);
    } else {
      give_up_pull(now);
    }
  }
  // A push to this router ends the wait as well.
  if (own_.generation != 0) end_first(false);
  // If a list is on its way, the router waits for it as long as the time for the first list
  // permits.
  if (is_first() && now >= *first_until_) {
    if (pull_ && now < began_ + options_.first_list) {
      first_until_ = began_ + options_.first_list;
    } else {
      end_first(true);
    }
  }
  // Without a connection the question would be lost.
  if (is_connected_ && now >= next_ask_) ask_all(now);
  return std::exchange(next_, {});
}

Instant ListExchange::due() const {
  Instant next = is_connected_ ? next_ask_ : began_ + options_.first_list;
  if (!is_connected_ && !is_first()) next = Instant::max();
  if (first_until_) next = std::min(next, *first_until_);
  if (pull_) next = std::min(next, pull_->ask.asked_at + options_.part_time);
  return next;
}

}  // namespace sightline::lists_exchange
