// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/pushes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "operator/judge/workers.h"

namespace sightline::judge {
namespace {

using object::Value;

Value list_of(const World& world, const Stack& stack) {
  Value list = Value::array();
  for (const desired::WorkerFields& fields : workers_of(world, stack)) {
    Value worker = Value::object();
    for (const auto& [name, value] : fields) worker.member(name) = value;
    list.append(std::move(worker));
  }
  return list;
}

bool answers_for(const RouterReport& router, const Stack& stack) {
  return router.revision == stack.revision && router.problem.empty();
}

bool holds(const RouterReport& router, const Value& list) {
  return router.generation && router.pushed == list;
}

// Beyond it there is no later one: what says so is no list of ours.
constexpr std::int64_t kGenerationMax = std::numeric_limits<std::int64_t>::max() - 1;

std::int64_t generation_for(const World& world, const Stack& stack, const Value& list) {
  std::int64_t newest = 0;
  bool is_held = false;
  for (const RouterReport& router : world.routers) {
    if (!answers_for(router, stack) || !router.generation) continue;
    const std::int64_t generation = std::min(*router.generation, kGenerationMax);
    if (generation < newest) continue;
    // Of one generation there may be two lists; then both are old.
    const bool is_also = generation == newest && newest > 0 ? is_held : true;
    newest = generation;
    is_held = is_also && holds(router, list);
  }
  return is_held ? newest : newest + 1;
}

}  // namespace

std::vector<ListPush> lists_to_push(const World& world) {
  std::vector<ListPush> pushes;
  for (const Stack& stack : world.stacks) {
    const Value list = list_of(world, stack);
    Value body = Value::object();
    body.member("revision") = stack.revision;
    body.member("generation") = generation_for(world, stack, list);
    body.member("workers") = list;
    for (const RouterReport& router : world.routers) {
      if (!answers_for(router, stack)) continue;
      const bool is_latest = router.generation == body["generation"].integer();
      if (!is_latest || !holds(router, list)) pushes.push_back({router.pod, body});
    }
  }
  return pushes;
}

}  // namespace sightline::judge
