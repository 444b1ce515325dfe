// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/recorder/event_series.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"

#include "operator/kube/object/metadata.h"
#include "operator/kube/object/timestamp.h"

namespace sightline::recorder {

using object::Value;

namespace {

Value reference_to(const Value& object) {
  return Value::object({{"apiVersion", object["apiVersion"]},
                        {"kind", object["kind"]},
                        {"name", object.at({"metadata", "name"})},
                        {"namespace", object.at({"metadata", "namespace"})},
                        {"uid", object.at({"metadata", "uid"})},
                        {"resourceVersion", object.at({"metadata", "resourceVersion"})}});
}

// What makes two happenings equal. The note does not count: the first one's note stays.
std::string series_key(const ObjectEvent& happening) {
  Value regarding = reference_to(happening.regarding);
  // Each change of the object has a new version, which would start a new series.
  regarding.erase({"resourceVersion"});
  return Value::array({happening.is_warning, happening.reason, happening.action, regarding})
      .to_text();
}

// The namespace of events about objects of the whole cluster.
std::string namespace_of(const Value& object) {
  const object::Key key = object::key_of(object);
  return key.name_space.empty() ? "default" : key.name_space;
}

}  // namespace

const object::Resource& event_resource() {
  static const object::Resource events{"events.k8s.io", "v1", "events", "Event"};
  return events;
}

Value EventSeries::event_of(WallTime wall, const ObjectEvent& happening) const {
  const std::uint64_t nanoseconds = static_cast<std::uint64_t>(wall.time_since_epoch().count());
  Value event;
  object::name_kind(event, event_resource());
  // As client-go names events: the name of the object, and the time in hexadecimal.
  event.set({"metadata", "name"},
            object::key_of(happening.regarding).name + "." + to_hex(nanoseconds));
  event.set({"metadata", "namespace"}, namespace_of(happening.regarding));
  event.set({"eventTime"}, object::to_micro_timestamp(wall));
  event.set({"reportingController"}, reporter_.controller);
  event.set({"reportingInstance"}, reporter_.instance);
  event.set({"action"}, happening.action);
  event.set({"reason"}, happening.reason);
  event.set({"regarding"}, reference_to(happening.regarding));
  event.set({"note"}, utf8_prefix(happening.note, kNoteBytesMax));
  event.set({"type"}, happening.is_warning ? "Warning" : "Normal");
  return event;
}

EventWrite EventSeries::patch_of(Series& series, Instant now) {
  series.written_at = now;
  series.written_count = series.count;
  const auto told =
      Value::object({{"count", series.count},
                     {"lastObservedTime", object::to_micro_timestamp(series.last_wall)}});
  series.event.set({"series"}, told);
  return {false, object::key_of(series.event), Value::object({{"series", told}}), series.event};
}

std::optional<EventWrite> EventSeries::on_happening(Instant now, WallTime wall,
                                                    const ObjectEvent& happening) {
  const std::string key = series_key(happening);
  const auto known = series_.find(key);
  if (known != series_.end() && now - known->second.last <= kSeriesSilence) {
    Series& series = known->second;
    ++series.count;
    series.last = now;
    series.last_wall = wall;
    return series.count == 2 ? std::optional(patch_of(series, now)) : std::nullopt;
  }
  if (known == series_.end() && series_.size() >= kSeriesMax) {
    series_.erase(std::min_element(
        series_.begin(), series_.end(),
        [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
  }
  Series series;
  series.event = event_of(wall, happening);
  series.last = now;
  series.last_wall = wall;
  series.written_at = now;
  EventWrite write{true, object::key_of(series.event), series.event, {}};
  series_[key] = std::move(series);
  return write;
}

std::vector<EventWrite> EventSeries::refresh(Instant now) {
  std::vector<EventWrite> writes;
  for (auto& [key, series] : series_) {
    const bool is_over = now - series.last > kSeriesSilence;
    const bool is_due = is_over || now - series.written_at >= kSeriesRefresh;
    if (is_due && series.count > series.written_count) writes.push_back(patch_of(series, now));
  }
  std::erase_if(series_,
                [&](const auto& entry) { return now - entry.second.last > kSeriesSilence; });
  return writes;
}

}  // namespace sightline::recorder
