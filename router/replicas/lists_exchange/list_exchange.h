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

#include "router/replicas/lists_exchange/list_message.h"

namespace sightline::lists_exchange {

// Times and limits of the exchange of worker lists.
struct ListExchangeOptions {
  // After the first connection, the router waits this long for answers of peers. Then it continues
  // without a list of peers.
  Duration first_answers = std::chrono::seconds(1);
  // The most time from the start to the first list: for a connection, and for a list that comes in
  // parts.
  Duration first_list = std::chrono::seconds(3);
  // Pause between questions until then.
  Duration first_asks = std::chrono::milliseconds(250);
  // Later, the pause between questions to all.
  Duration asks = std::chrono::seconds(10);
  // Later, the least pause between two of them.
  Duration pause = std::chrono::seconds(1);
  // Later answers do not count.
  Duration answer_time = std::chrono::seconds(2);
  // Until a part is requested again.
  Duration part_time = std::chrono::milliseconds(500);
  // A peer that does not send a part after so many requests is given no more.
  std::uint32_t part_tries = 6;
  // The most answers of this router in a second. Answers to questions to all are short, parts are
  // long.
  std::uint32_t held_answers_max = 2'000;
  std::uint32_t part_answers_max = 128;
  // Whose newest question is remembered.
  std::size_t askers_max = 4'096;
  // As for a push.
  std::size_t list_bytes_max = 4 << 20;
};

// The list that this router holds: it was pushed here or came from a peer.
struct Own {
  // 0: there is no list.
  std::uint64_t generation = 0;
  std::uint64_t digest = 0;
  // Null: there is no list.
  std::shared_ptr<const std::string> body;
};

// Decides when peers are asked for their list, which of their answers count, and how their
// questions are answered. Input is messages and the time, output is messages and lists.
//
// An answer counts if it names the nonce of an open question. Each question has its own random
// nonce, so a recorded answer never counts. A question is answered once: the questions of one asker
// have rising numbers. A list is taken only if its generation is higher than that of the present
// list.
// Thread safety: one thread at a time.
class ListExchange {
 public:
  // `own_instance` is not 0. `seed` is random, different at each start.
  ListExchange(std::uint64_t own_instance, std::uint64_t seed, Instant now,
               ListExchangeOptions options = {});

  // The present list has changed.
  void set_own(Own own) { own_ = std::move(own); }
  // Sets the generations that peers announce. A new one above ours makes a question due soon.
  // Further questions follow, with doubling pauses, while the peers announce it.
  void announced(const std::set<std::uint64_t>& generations, Instant now);
  // Sets the most bytes of a part that this router sends. It is kept from 1 to kPartBytesMax.
  void set_part_bytes_max(std::size_t bytes);
  // From now on peers receive our questions, so one is due.
  void connected(Instant now);
  // Takes a message of a peer. It may be a recorded one.
  void hear(Message message, Instant now);

  // What the owner does next.
  struct Actions {
    std::vector<ListAsk> asks;
    struct OutgoingAnswer {
      std::uint64_t asker = 0;
      Message message;
    };
    std::vector<OutgoingAnswer> answers;
    // The whole body of a list newer than the present one.
    std::optional<std::string> list;
    // True once, if no list came in the time for the first one.
    bool does_without = false;
    // A peer that has another list of the present generation. One of the two must be pushed again.
    std::optional<std::uint64_t> forked;
    // Questions above the limit of a second.
    std::uint64_t unanswered = 0;
    // Their number was not new.
    std::uint64_t repeated = 0;
  };
  // Returns what to do, once. Call it at due() and after every other call.
  Actions turn(Instant now);
  // When turn() has work.
  [[nodiscard]] Instant due() const;

 private:
  // A sent question.
  struct Open {
    std::uint64_t nonce = 0;
    Instant asked_at{};
  };
  // A list under way from one peer.
  struct Pull {
    ListReply of;
    std::string body;
    Open ask;
    std::uint32_t tries = 0;
  };

  // Answers a question, if it is new and within the limits.
  void hear_ask(const ListAsk& ask, Instant now);
  // Begins to fetch a newer list.
  void hear_held(const ListReply& held, Instant now);
  // Takes the next part of the list under way.
  void hear_part(ListChunk part, Instant now);
  void ask_all(Instant now);
  void ask_part(Instant now);
  // Gives up the list under way, and asks all again soon.
  void give_up_pull(Instant now);
  // The time for the first list is over.
  void end_first(bool does_without);
  // Remembers the question's number. Returns whether it is above the asker's highest one before.
  [[nodiscard]] bool note_ask(const ListAsk& ask);
  // Counts an answer. Returns false above the limit of a second.
  [[nodiscard]] bool spend_answer(bool is_part, Instant now);
  // Whether the router still waits for its first list.
  [[nodiscard]] bool is_first() const { return first_until_.has_value(); }

  const std::uint64_t own_instance_;
  const ListExchangeOptions options_;
  const Instant began_;
  Rng nonces_;
  Own own_;
  std::size_t part_bytes_max_ = kPartBytesMax;
  // Absent: the first list came, or its time is over.
  std::optional<Instant> first_until_;
  bool is_connected_ = false;
  // The last question to all.
  std::optional<Open> open_;
  Instant next_ask_{};
  std::optional<Pull> pull_;
  // Above ours.
  std::set<std::uint64_t> announced_;
  // Until the next question, while there are any.
  Duration retry_;
  // Questions so far.
  std::uint64_t asked_ = 0;
  // Instance and number of the newest question.
  std::map<std::uint64_t, std::uint64_t> askers_;

  // In which answers are counted.
  Instant second_{};
  std::uint32_t held_answers_ = 0;
  std::uint32_t part_answers_ = 0;
  Actions next_;
};

}  // namespace sightline::lists_exchange
