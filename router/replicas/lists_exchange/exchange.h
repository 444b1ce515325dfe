// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"

#include "router/replicas/lists_exchange/message.h"

namespace sightline::lists_exchange {

struct ExchangeOptions {
  // After the first connection, for the answers of peers; then the router does without.
  Duration first_answers = std::chrono::seconds(1);
  // From the start on, for everything before that: a connection, a list that comes in parts.
  Duration first_list = std::chrono::seconds(3);
  Duration first_asks = std::chrono::milliseconds(250);  // between them, until then
  Duration asks = std::chrono::seconds(10);              // between questions to all, later
  Duration pause = std::chrono::seconds(1);              // the least between two, later
  Duration answer_time = std::chrono::seconds(2);        // after which an answer does not count
  Duration part_time = std::chrono::milliseconds(500);   // for a part, before it is asked for again
  std::uint32_t part_tries = 6;
  // Answers of this router in a second: questions to all are short, parts are long.
  std::uint32_t held_answers_max = 2'000;
  std::uint32_t part_answers_max = 128;
  std::size_t askers_max = 4'096;        // whose newest question is remembered
  std::size_t list_bytes_max = 4 << 20;  // as of a push
};

// The list that was pushed to this router, or that it has of a peer.
struct Own {
  std::uint64_t generation = 0;  // 0: none
  std::uint64_t digest = 0;
  std::shared_ptr<const std::string> body;  // null: none
};

// When peers are asked for their list, what of their answers counts, and what they are answered.
// Messages and time in, messages and lists out.
//
// An answer counts if it names the nonce of a question that is open, and each question has its own,
// drawn at random: what was recorded is answer to nothing. Nor is a question answered twice: those
// of one asker count up. A list is given out only if its generation is higher than that of the one
// held here. Thread safety: none.
class Exchange {
 public:
  // own_instance: not 0. seed: random, another one at each start.
  Exchange(std::uint64_t own_instance, std::uint64_t seed, Instant now,
           ExchangeOptions options = {});

  // The list that is held here has changed.
  void set_own(Own own) { own_ = std::move(own); }
  // The generations that peers announce now. One that is above ours and new brings a question soon,
  // and further ones, with pauses that double, while it is announced.
  void announced(const std::set<std::uint64_t>& generations, Instant now);
  // Parts that are given out are no longer, and at least a byte; kPartBytesMax is never passed.
  void set_part_bytes_max(std::size_t bytes);
  // What is asked from now on is heard by the others.
  void connected(Instant now);
  void hear(Message message, Instant now);

  struct Turn {
    std::vector<Ask> asks;
    struct Answer {
      std::uint64_t asker = 0;
      Message message;
    };
    std::vector<Answer> answers;
    std::optional<std::string> list;  // the body of a newer one than is held, whole
    bool does_without = false;        // once: no list came in the time for the first one
    // A peer that has another list of the generation that is held here.
    std::optional<std::uint64_t> forked;
    std::uint64_t unanswered = 0;  // questions beyond what is answered in a second
    std::uint64_t repeated = 0;    // not newer than one that was heard of the asker
  };
  // To be called at due() and after every other call.
  Turn turn(Instant now);
  [[nodiscard]] Instant due() const;

 private:
  struct Open {
    std::uint64_t nonce = 0;
    Instant asked_at{};
  };
  // A list that is being fetched from one peer.
  struct Pull {
    Held of;
    std::string body;
    Open ask;
    std::uint32_t tries = 0;
  };

  void hear_ask(const Ask& ask, Instant now);
  void hear_held(const Held& held, Instant now);
  void hear_part(Part part, Instant now);
  void ask_all(Instant now);
  void ask_part(Instant now);
  void give_up_pull(Instant now);
  void end_first(bool does_without);
  [[nodiscard]] bool is_new(const Ask& ask);
  [[nodiscard]] bool may_answer(bool is_part, Instant now);
  [[nodiscard]] bool is_first() const { return first_until_.has_value(); }

  const std::uint64_t own_instance_;
  const ExchangeOptions options_;
  const Instant began_;
  Rng nonces_;
  Own own_;
  std::size_t part_bytes_max_ = kPartBytesMax;
  std::optional<Instant> first_until_;  // nothing: the first list was had, or is done without
  bool is_connected_ = false;
  std::optional<Open> open_;  // the last question to all
  Instant next_ask_{};
  std::optional<Pull> pull_;
  std::set<std::uint64_t> announced_;              // generations above ours
  Duration retry_;                                 // until the next question, while there are any
  std::uint64_t asked_ = 0;                        // questions
  std::map<std::uint64_t, std::uint64_t> askers_;  // number of the newest question

  Instant second_{};  // of the answers that are counted
  std::uint32_t held_answers_ = 0;
  std::uint32_t part_answers_ = 0;
  Turn next_;
};

}  // namespace sightline::lists_exchange
