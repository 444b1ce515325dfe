// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/lists/list_in_force.h"

#include <map>
#include <utility>

namespace sightline::lists {
namespace {

using contract::WorkerSpec;

// FNV-1a with 64 bits. Fast and without secrets, which is enough to distinguish lists.
class Fnv {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      value_ = (value_ ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
    }
    value_ *= 0x100000001b3ULL;  // as if a zero byte followed: the ends of texts count too
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::string_view name_of(ListSource source) {
  switch (source) {
    case ListSource::None:
      return "none";
    case ListSource::File:
      return "file";
    case ListSource::Peers:
      return "peers";
    case ListSource::Push:
      return "push";
  }
  return "none";
}

std::uint64_t digest_of(const PushedWorkers& list) {
  Fnv digest;
  digest.add(list.revision);
  digest.add(std::to_string(list.generation));
  for (const WorkerSpec& worker : list.workers) digest.add(contract::worker_text(worker));
  return digest.value();
}

std::vector<WorkerSpec> with_key_files(std::vector<WorkerSpec> workers,
                                       const std::vector<WorkerSpec>& boot) {
  std::map<std::pair<std::string_view, std::uint16_t>, std::string_view> keys;
  for (const WorkerSpec& worker : boot) {
    if (!worker.api_key_file.empty()) keys[{worker.host, worker.port}] = worker.api_key_file;
  }
  // A worker without a key file in `boot` gets no key: a push cannot bring one.
  for (WorkerSpec& worker : workers) {
    const auto key = keys.find({worker.host, worker.port});
    if (key != keys.end()) worker.api_key_file = key->second;
  }
  return workers;
}

InForce with_boot(const InForce& now, std::vector<WorkerSpec> boot) {
  // The pushed list stays in force: a reread file must not undo a push.
  InForce next = now;
  next.boot = std::move(boot);
  if (now.pushed) {
    next.workers = with_key_files(now.pushed->list.workers, next.boot);
  } else {
    next.source = ListSource::File;
    next.workers = next.boot;
  }
  return next;
}

InForce with_push(const InForce& now, std::shared_ptr<const PushedList> pushed, ListSource source) {
  InForce next;
  next.source = source;
  next.boot = now.boot;
  next.workers = with_key_files(pushed->list.workers, next.boot);
  next.pushed = std::move(pushed);
  return next;
}

}  // namespace sightline::lists
