// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/fakes/fake_watch.h"

#include <algorithm>

#include "operator/kube/object/metadata.h"

namespace sightline::fakes {
namespace {

using client::WatchEvent;

bool meets_label(const object::Value& object, std::string_view requirement) {
  const auto& labels = object.at({"metadata", "labels"});
  if (requirement.starts_with('!')) return !labels.contains(requirement.substr(1));
  const std::size_t equals = requirement.find('=');
  if (equals == std::string_view::npos) return labels.contains(requirement);
  const bool is_negative = equals > 0 && requirement[equals - 1] == '!';
  const std::string_view name = requirement.substr(0, equals - (is_negative ? 1 : 0));
  std::string_view value = requirement.substr(equals + 1);
  if (value.starts_with('=')) value.remove_prefix(1);
  const bool is_equal = labels.contains(name) && labels[name].text() == value;
  return is_equal != is_negative;
}

bool meets_field(const object::Value& object, std::string_view requirement) {
  const std::size_t equals = requirement.find('=');
  const std::string_view name = requirement.substr(0, equals);
  const std::string_view value = requirement.substr(std::min(equals + 1, requirement.size()));
  const object::Key key = object::key_of(object);
  return name == "metadata.name" ? key.name == value : key.name_space == value;
}

template <class Meets>
bool meets_all(std::string_view requirements, Meets meets) {
  while (!requirements.empty()) {
    const std::string_view one = requirements.substr(0, requirements.find(','));
    if (!meets(one)) return false;
    requirements.remove_prefix(std::min(one.size() + 1, requirements.size()));
  }
  return true;
}

}  // namespace

bool is_selected(const client::Selection& selection, const object::Value& object) {
  const object::Key key = object::key_of(object);
  if (!selection.name_space.empty() && selection.name_space != key.name_space) return false;
  return meets_all(selection.labels,
                   [&](std::string_view one) { return meets_label(object, one); }) &&
         meets_all(selection.fields,
                   [&](std::string_view one) { return meets_field(object, one); });
}

void FakeStream::push(std::string type, object::Value object) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    events_.push_back({WatchEvent::EventKind::Event, std::move(type), std::move(object)});
  }
  changed_.notify_all();
}

void FakeStream::end(std::optional<client::Failure> failure) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    is_over_ = true;
    failure_ = std::move(failure);
  }
  changed_.notify_all();
}

bool FakeStream::is_over() const {
  const std::lock_guard lock(mutex_);
  return is_over_;
}

client::Answer<WatchEvent> FakeStream::next(Duration time_max) {
  std::unique_lock lock(mutex_);
  if (time_max > Duration::zero()) {
    changed_.wait_for(lock, time_max, [this] { return is_over_ || !events_.empty(); });
  }
  if (!events_.empty()) {
    WatchEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  if (!is_over_) return WatchEvent{};
  if (failure_) return *failure_;
  return WatchEvent{WatchEvent::EventKind::Ended, {}, {}};
}

}  // namespace sightline::fakes
