// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "router/front/selection/selection.h"

// The questions to a selector and its answers as bytes. Equal values have equal bytes.
namespace sightline::test {

class BytesOut {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void put(const Number& number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  template <class Value>
  void put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    for (const Value& value : values) put(value);
  }
  void put(const std::array<bool, contract::kEngineFamilies.size()>& flags) {
    for (const bool flag : flags) put(flag);
  }
  void put(const keys::BlockKey& key) { put(key.value); }
  void put(const selection::TokenSpan& span) {
    put(span.start);
    put(span.length);
  }
  void put(Duration time) { put(time.count()); }
  void put(const openai::Usage& usage) {
    put(usage.prompt_tokens);
    put(usage.completion_tokens);
    put(usage.cached_tokens);
    put(usage.alone);
  }
  void put(const Error& error) {
    put(error.code);
    put(error.blame);
    put(error.retryable);
    put(error.message);
    put(error.param);
    put(error.limit);
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Appends each member to the bytes.
template <class Selection, class Each>
void each_of_selection(Selection& s, Each each) {
  each(s.worker), each(s.host), each(s.port), each(s.rank), each(s.family);
  each(s.overlap_blocks), each(s.prompt_blocks), each(s.block_size), each(s.reason);
  each(s.score.cost.raw_prefill_blocks), each(s.score.cost.overlap_credit_blocks);
  each(s.score.cost.prefill_blocks), each(s.score.cost.decode_blocks);
  each(s.score.cost.total_blocks), each(s.score.recompute_blocks), each(s.score.spread_blocks);
  each(s.reservation);
}

template <class Inquiry, class Each>
void each_of_inquiry(Inquiry& i, Each each) {
  each(i.job.prompt_tokens), each(i.job.block_size), each(i.first_prompt_tokens), each(i.images),
      each(i.adapter);
  each(i.unpredictable), each(i.is_exact), each(i.is_read);
  each(i.tried.failed), each(i.tried.again);
}

template <class Ending, class Each>
void each_of_ending(Ending& e, Each each) {
  each(e.kind), each(e.status), each(e.usage), each(e.failure), each(e.request_id),
      each(e.first_token);
}

}  // namespace sightline::test
