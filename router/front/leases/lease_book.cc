// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/leases/lease_book.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sightline::leases {
namespace {

// Removes ".NUMBER" from the end of the text.
// The instance may itself contain dots, so a name is read from its end.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(dot + 1);
  Number number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
    return std::nullopt;
  }
  text.remove_suffix(text.size() - dot);
  return number;
}

bool is_instance_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == ':' || c == '-';
}

}  // namespace

bool is_instance(std::string_view text) {
  return !text.empty() && text.size() <= kInstanceBytesMax &&
         std::all_of(text.begin(), text.end(), is_instance_character);
}

std::string text_of(const Name& name) {
  return name.instance + "." + std::to_string(name.number) + "." + std::to_string(name.attempt);
}

std::optional<Name> parse_name(std::string_view text) {
  const auto attempt = take_number<std::uint32_t>(text);
  if (!attempt) return std::nullopt;
  const auto number = take_number<std::uint64_t>(text);
  if (!number || !is_instance(text)) return std::nullopt;
  return Name{std::string(text), *number, *attempt};
}

LeaseBook::NameState LeaseBook::find(const Name& name) const {
  const auto instance = instances_.find(name.instance);
  if (instance != instances_.end()) {
    const auto place = instance->second.entries.find(name.number);
    if (place != instance->second.entries.end()) {
      const Entry& entry = place->second;
      // A higher attempt is a new reservation of the same request.
      if (entry.attempt < name.attempt) return {};
      if (entry.attempt > name.attempt) return {.state = NameState::State::Over};
      return {.state = NameState::State::Open, .lease = entry.lease};
    }
  }
  const auto released = released_.find({name.instance, name.number});
  const bool is_over = released != released_.end() && released->second.attempt >= name.attempt;
  return {.state = is_over ? NameState::State::Over : NameState::State::Free};
}

LeaseBook::Added LeaseBook::add(const Name& name, LeaseId lease, std::optional<Instant> own_end,
                                Instant now) {
  using Outcome = Added::Outcome;
  const NameState found = find(name);
  if (found.state == NameState::State::Open) return {.outcome = Outcome::Open, .open = found.lease};
  if (found.state == NameState::State::Over) return {.outcome = Outcome::Over};
  // The limits are checked last. A known name gets its answer even if the book is full.
  if (open_ >= limits_.leases_max) return {.outcome = Outcome::Full};
  Instance* instance = open_instance(name.instance, now);
  if (instance == nullptr) return {.outcome = Outcome::Full};
  Added added;
  const auto earlier = instance->entries.find(name.number);
  if (earlier != instance->entries.end()) {
    added.ended = earlier->second.lease;
    close(*instance, earlier);
  }
  released_.erase({name.instance, name.number});
  instance->entries[name.number] = {.attempt = name.attempt, .lease = lease, .own_end = own_end};
  if (own_end) ++instance->with_own_end;
  ++open_;
  return added;
}

std::optional<LeaseId> LeaseBook::release(const Name& name, Instant now) {
  std::optional<LeaseId> ended;
  const auto instance = instances_.find(name.instance);
  if (instance != instances_.end()) {
    // A release also shows that the instance is alive.
    instance->second.heard = now;
    const auto place = instance->second.entries.find(name.number);
    if (place != instance->second.entries.end()) {
      // A late release of an earlier attempt must not end the later one.
      if (place->second.attempt > name.attempt) return std::nullopt;
      ended = place->second.lease;
      close(instance->second, place);
      drop_if_empty(instance);
    }
  }
  const Key key{name.instance, name.number};
  const auto known = released_.find(key);
  const bool is_over = known != released_.end() && known->second.attempt >= name.attempt;
  // The release may arrive before the reservation. It must win then as well.
  if (!is_over) remember(key, name.attempt, now);
  return ended;
}

LeaseBook::Renewed LeaseBook::renew(const List& list, Instant now) {
  Renewed renewed;
  std::map<std::uint64_t, std::uint32_t> attempts;
  for (const Listed& listed : list.open) attempts.emplace(listed.number, listed.attempt);
  hear(list.instance, now);
  const auto known = instances_.find(list.instance);
  // The order of the entries lets the search begin at the first number of the list.
  if (known != instances_.end()) {
    auto& [name, instance] = *known;
    auto place = instance.entries.lower_bound(list.from);
    while (place != instance.entries.end() && place->first <= list.up_to) {
      const auto [number, entry] = *place;
      // Lists do not cover leases with an end of their own.
      if (entry.own_end || attempts.contains(number)) {
        ++place;
        continue;
      }
      renewed.ended.push_back(entry.lease);
      place = close(instance, place);
      remember({name, number}, entry.attempt, now);
    }
    drop_if_empty(known);
  }
  for (std::size_t i = 0; i < list.open.size(); ++i) {
    const Name name{std::string(list.instance), list.open[i].number, list.open[i].attempt};
    if (find(name).state == NameState::State::Free) renewed.missing.push_back(i);
  }
  return renewed;
}

std::optional<LeaseId> LeaseBook::supersede(const Name& name) {
  const auto instance = instances_.find(name.instance);
  if (instance == instances_.end()) return std::nullopt;
  const auto place = instance->second.entries.find(name.number);
  if (place == instance->second.entries.end()) return std::nullopt;
  if (place->second.attempt > name.attempt) return std::nullopt;
  const LeaseId ended = place->second.lease;
  close(instance->second, place);
  drop_if_empty(instance);
  return ended;
}

void LeaseBook::hear(std::string_view instance, Instant now) {
  const auto known = instances_.find(instance);
  if (known != instances_.end()) known->second.heard = now;
}

std::vector<LeaseId> LeaseBook::expire(Instant now) {
  std::vector<LeaseId> ended;
  while (!turns_.empty() && now - turns_.front().at >= limits_.released_age) forget_oldest();
  for (auto place = instances_.begin(); place != instances_.end();) {
    end_overdue(place->second, now, ended);
    place = place->second.entries.empty() ? instances_.erase(place) : std::next(place);
  }
  return ended;
}

// A lease that ends by silence is not remembered. Its frontend may come back and list it again.
void LeaseBook::end_overdue(Instance& instance, Instant now, std::vector<LeaseId>& ended) {
  const bool is_silent = now - instance.heard >= limits_.silence_max;
  // Most instances have no lease with an end of its own. Their entries need no visit.
  if (!is_silent && instance.with_own_end == 0) return;
  for (auto place = instance.entries.begin(); place != instance.entries.end();) {
    const Entry& entry = place->second;
    const bool is_overdue = entry.own_end ? *entry.own_end <= now : is_silent;
    if (!is_overdue) {
      ++place;
      continue;
    }
    ended.push_back(entry.lease);
    place = close(instance, place);
  }
}

// Returns null if there are too many instances.
LeaseBook::Instance* LeaseBook::open_instance(std::string_view name, Instant now) {
  auto known = instances_.find(name);
  if (known == instances_.end()) {
    if (instances_.size() >= limits_.instances_max) return nullptr;
    known = instances_.try_emplace(std::string(name)).first;
  }
  known->second.heard = now;
  return &known->second;
}

LeaseBook::Entries::iterator LeaseBook::close(Instance& instance, Entries::iterator place) {
  if (place->second.own_end) --instance.with_own_end;
  --open_;
  return instance.entries.erase(place);
}

void LeaseBook::drop_if_empty(Instances::iterator instance) {
  if (instance->second.entries.empty()) instances_.erase(instance);
}

void LeaseBook::remember(Key key, std::uint32_t attempt, Instant now) {
  released_[key] = {.attempt = attempt, .turn = ++turn_};
  turns_.push_back({now, std::move(key), turn_});
  if (turns_.size() > limits_.released_max) forget_oldest();
}

void LeaseBook::forget_oldest() {
  const auto oldest = released_.find(turns_.front().key);
  // The name may have been reserved again, or released a second time.
  const bool is_it = oldest != released_.end() && oldest->second.turn == turns_.front().turn;
  if (is_it) released_.erase(oldest);
  turns_.pop_front();
}

}  // namespace sightline::leases
