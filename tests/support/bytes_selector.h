// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/check.h"

#include "router/front/selection/selector.h"

// What a selector is asked and told, as bytes and back.
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

class BytesIn {
 public:
  explicit BytesIn(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void get(Number& number) {
    SL_CHECK(bytes_.size() >= sizeof number);
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_.remove_prefix(sizeof number);
  }
  void get(std::string& text) {
    std::size_t size = 0;
    get(size);
    SL_CHECK(bytes_.size() >= size);
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <class Value>
  void get(std::optional<Value>& value) {
    bool has_value = false;
    get(has_value);
    value.reset();
    if (has_value) get(value.emplace());
  }
  template <class Value>
  void get(std::vector<Value>& values) {
    std::size_t size = 0;
    get(size);
    values.resize(size);
    for (Value& value : values) get(value);
  }
  void get(std::array<bool, contract::kEngineFamilies.size()>& flags) {
    for (bool& flag : flags) get(flag);
  }
  void get(keys::BlockKey& key) { get(key.value); }
  void get(openai::Usage& usage) {
    get(usage.prompt_tokens);
    get(usage.completion_tokens);
    get(usage.cached_tokens);
    get(usage.alone);
  }
  void get(Error& error) {
    get(error.code);
    get(error.blame);
    get(error.retryable);
    get(error.message);
    get(error.param);
    get(error.limit);
  }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// Puts each member into the bytes, or gets it from them.
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
  each(i.job.prompt_tokens), each(i.job.block_size), each(i.first_prompt_tokens), each(i.adapter);
  each(i.unpredictable), each(i.is_exact), each(i.is_read);
  each(i.tried.failed), each(i.tried.again);
}

template <class Ending, class Each>
void each_of_ending(Ending& e, Each each) {
  each(e.kind), each(e.status), each(e.usage), each(e.failure), each(e.request_id);
}

// A selector behind another one, as if in another process: everything passes as bytes.
class BytesSelector : public selection::Selector {
 public:
  explicit BytesSelector(selection::Selector& inner) : inner_(inner) {}

  [[nodiscard]] Task<Result<selection::Selection>> select(
      const selection::Inquiry& inquiry) override {
    const selection::Inquiry there = copied(inquiry);
    auto selected = co_await inner_.select(there);
    co_return copied(selected);
  }
  void first_token(selection::ReservationId reservation) override {
    inner_.first_token(reservation);
  }
  void end(selection::ReservationId reservation, const selection::Ending& ending) override {
    BytesOut out;
    each_of_ending(ending, [&](const auto& member) { out.put(member); });
    const std::string bytes = out.take();
    BytesIn in(bytes);
    selection::Ending back;
    each_of_ending(back, [&](auto& member) { in.get(member); });
    SL_CHECK(in.at_end());
    inner_.end(reservation, back);
  }
  // Bits of life are not sent one by one: a frontend in another process has a sign of its own.
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life(selection::ReservationId) override {
    return std::make_shared<fleet::LifeSign>();
  }
  [[nodiscard]] Task<Result<selection::Explanation>> explain(
      const selection::Inquiry& inquiry) override {
    const selection::Inquiry copy = copied(inquiry);
    auto explanation = co_await inner_.explain(copy);
    co_return explanation;
  }

 private:
  static Error through_bytes(const Error& error) {
    BytesOut out;
    out.put(error);
    const std::string bytes = out.take();
    BytesIn in(bytes);
    Error back;
    in.get(back);
    return back;
  }
  static Result<selection::Selection> copied(const Result<selection::Selection>& selected) {
    if (!selected.ok()) return through_bytes(selected.error());
    BytesOut out;
    each_of_selection(*selected, [&](const auto& member) { out.put(member); });
    const std::string bytes = out.take();
    BytesIn in(bytes);
    selection::Selection back;
    each_of_selection(back, [&](auto& member) { in.get(member); });
    SL_CHECK(in.at_end());
    return back;
  }
  static selection::Inquiry copied(const selection::Inquiry& inquiry) {
    BytesOut out;
    out.put(*inquiry.keys);
    each_of_inquiry(inquiry, [&](const auto& member) { out.put(member); });
    const std::string bytes = out.take();
    BytesIn in(bytes);
    selection::Inquiry back;
    std::vector<keys::BlockKey> keys;
    in.get(keys);
    back.keys = std::make_shared<const std::vector<keys::BlockKey>>(std::move(keys));
    each_of_inquiry(back, [&](auto& member) { in.get(member); });
    SL_CHECK(in.at_end());
    return back;
  }

  selection::Selector& inner_;
};

}  // namespace sightline::test
