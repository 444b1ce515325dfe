// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/plan/plan.h"

#include <algorithm>
#include <set>

namespace sightline::plan {
namespace {

std::int64_t routable_of(const Revision& revision) {
  std::int64_t sum = 0;
  for (const auto& [pool, count] : revision.pools) sum += count.routable;
  return sum;
}

bool has_pods(const Revision& revision) {
  return std::any_of(revision.pools.begin(), revision.pools.end(), [](const auto& pool) {
    return pool.second.pods > 0 || pool.second.wanted > 0;
  });
}

Replicas wanted_of(const Revision& revision) {
  Replicas replicas;
  for (const auto& [pool, count] : revision.pools) replicas[pool] = count.wanted;
  return replicas;
}

PoolCount count_of(const Revision& revision, const std::string& pool) {
  const auto found = revision.pools.find(pool);
  return found == revision.pools.end() ? PoolCount{} : found->second;
}

std::int64_t target_of(const Replicas& replicas, const std::string& pool) {
  const auto found = replicas.find(pool);
  return found == replicas.end() ? 0 : found->second;
}

// Replaces the workers of one revision by those of another.
class Shift {
 public:
  Shift(const Revision& from, const Revision& to, const Replicas& target, const Rules& rules)
      : target_(target), rules_(rules) {
    std::set<std::string> names;
    for (const auto& [pool, count] : from.pools) names.insert(pool);
    for (const auto& [pool, count] : to.pools) names.insert(pool);
    for (const auto& [pool, count] : target) names.insert(pool);
    for (const std::string& pool : names) {
      pools_.push_back({pool, count_of(from, pool), count_of(to, pool), target_of(target, pool)});
    }
  }

  // Changes either the new or the old revision, not both: the effect of one must be seen before the
  // other changes.
  void step() {
    if (rules_.strategy == crd::Strategy::Recreate) return recreate();
    if (rules_.strategy == crd::Strategy::BlueGreen) return blue_green();
    grow();
    if (!is_changed()) shrink();
  }

  [[nodiscard]] Replicas from() const {
    Replicas replicas;
    for (const Pool& pool : pools_) replicas[pool.name] = pool.from_next;
    return replicas;
  }
  [[nodiscard]] Replicas to() const {
    Replicas replicas;
    for (const Pool& pool : pools_) replicas[pool.name] = pool.to_next;
    return replicas;
  }
  [[nodiscard]] bool is_changed() const {
    return std::any_of(pools_.begin(), pools_.end(), [](const Pool& pool) {
      return pool.from_next != pool.from.wanted || pool.to_next != pool.to.wanted;
    });
  }

 private:
  struct Pool {
    Pool(std::string its_name, const PoolCount& old, const PoolCount& young,
         std::int64_t its_target)
        : name(std::move(its_name)),
          from(old),
          to(young),
          target(its_target),
          from_next(old.wanted),
          to_next(std::min(young.wanted, its_target)) {}

    // Counts workers that stay: the observed number may be older than the wanted one.
    [[nodiscard]] std::int64_t routable() const {
      return std::min(from.routable, from.wanted) + std::min(to.routable, to.wanted);
    }

    std::string name;
    PoolCount from;
    PoolCount to;
    std::int64_t target;
    std::int64_t from_next;
    std::int64_t to_next;
  };

  void recreate() {
    // No new worker starts while an old one exists.
    const bool is_gone = std::all_of(pools_.begin(), pools_.end(), [](const Pool& pool) {
      return pool.from.pods == 0 && pool.from.wanted == 0;
    });
    for (Pool& pool : pools_) {
      pool.from_next = 0;
      if (is_gone) pool.to_next = pool.target;
    }
  }

  void blue_green() {
    const bool is_there = std::all_of(pools_.begin(), pools_.end(), [](const Pool& pool) {
      return std::min(pool.to.routable, pool.to.wanted) >= pool.target;
    });
    for (Pool& pool : pools_) {
      pool.to_next = pool.target;
      if (is_there) pool.from_next = 0;
    }
  }

  void grow() {
    // The smallest part of its target that a pool can reach, as a fraction. It sets the pace.
    std::int64_t slowest = 1;
    std::int64_t of = 1;
    std::map<std::string, std::int64_t> reach;
    for (const Pool& pool : pools_) {
      if (pool.target == 0) continue;
      const std::int64_t there =
          std::max(pool.from.pods, pool.from.wanted) + std::max(pool.to.pods, pool.to.wanted);
      const std::int64_t room = std::max<std::int64_t>(pool.target + rules_.max_surge - there, 0);
      reach[pool.name] = std::min(pool.target, pool.to_next + room);
      if (reach[pool.name] * of < slowest * pool.target) {
        slowest = reach[pool.name];
        of = pool.target;
      }
    }
    for (Pool& pool : pools_) {
      if (pool.target == 0) continue;
      // At most one worker more than the slowest pool's part of the target.
      const std::int64_t pace = slowest * pool.target / of + 1;
      pool.to_next = std::max(pool.to_next, std::min(reach[pool.name], pace));
    }
  }

  void shrink() {
    std::int64_t slowest = 0;
    std::int64_t of = 1;
    std::map<std::string, std::int64_t> reach;
    for (const Pool& pool : pools_) {
      // An unroutable worker gets no requests, so it may go in any case.
      const std::int64_t idle = pool.from.wanted - std::min(pool.from.routable, pool.from.wanted);
      const std::int64_t spare = pool.routable() - (pool.target - rules_.max_unavailable);
      const std::int64_t may_go = std::max<std::int64_t>(spare, 0) + idle;
      reach[pool.name] = std::max<std::int64_t>(pool.from.wanted - may_go, 0);
      const std::int64_t size = std::max<std::int64_t>(pool.target, 1);
      if (reach[pool.name] * of > slowest * size) {
        slowest = reach[pool.name];
        of = size;
      }
    }
    for (Pool& pool : pools_) {
      const std::int64_t size = std::max<std::int64_t>(pool.target, 1);
      // At most one worker less than the slowest pool's part.
      const std::int64_t pace = (slowest * size + of - 1) / of - 1;
      pool.from_next = std::min(pool.from_next, std::max(reach[pool.name], pace));
    }
  }

  const Replicas& target_;
  const Rules& rules_;
  std::vector<Pool> pools_;
};

// For the only revision: goes to the target directly, but leaves room for terminating pods.
std::int64_t grown(const PoolCount& count, std::int64_t target, const Rules& rules) {
  if (target <= count.wanted) return target;
  const std::int64_t there = std::max(count.pods, count.wanted);
  const std::int64_t room = std::max<std::int64_t>(target + rules.max_surge - there, 0);
  return std::min(target, count.wanted + room);
}

std::string counts_text(const Revision& revision) {
  std::int64_t wanted = 0;
  for (const auto& [pool, count] : revision.pools) wanted += count.wanted;
  return revision.name + " has " + std::to_string(routable_of(revision)) + " of " +
         std::to_string(wanted) + " workers routable";
}

bool is_complete(const Revision& revision, const Replicas& target) {
  const auto is_as_wanted = [&](const auto& pool) {
    const PoolCount count = count_of(revision, pool.first);
    return count.wanted == pool.second && count.pods == pool.second &&
           count.routable == pool.second;
  };
  const auto is_asked_for = [&](const auto& pool) {
    return pool.second.pods == 0 || target.contains(pool.first);
  };
  return std::all_of(target.begin(), target.end(), is_as_wanted) &&
         std::all_of(revision.pools.begin(), revision.pools.end(), is_asked_for);
}

Plan shifted(const Revision& from, const Revision& to, const RolloutTarget& target,
             const Rules& rules) {
  Plan plan;
  Shift shift(from, to, target.replicas, rules);
  shift.step();
  plan.replicas[from.name] = shift.from();
  plan.replicas[to.name] = shift.to();
  plan.message = counts_text(from) + ", " + counts_text(to);
  return plan;
}

}  // namespace

Plan next(const RolloutTarget& target, const std::vector<Revision>& observed, const Rules& rules) {
  Plan plan;
  for (const Revision& revision : observed) plan.replicas[revision.name] = wanted_of(revision);
  // A suspension comes before a pause.
  if (rules.is_paused && !rules.is_suspended) {
    plan.phase = Phase::Paused;
    plan.message = "paused by spec.rollout.paused";
    return plan;
  }
  if (rules.is_suspended) {
    for (auto& [name, replicas] : plan.replicas) {
      for (auto& [pool, wanted] : replicas) wanted = 0;
    }
    plan.phase = Phase::Suspended;
    plan.message = "suspended by spec.suspend";
    return plan;
  }
  Revision wanted{.name = target.revision, .pools = {}};
  std::vector<Revision> others;
  for (const Revision& revision : observed) {
    if (revision.name == target.revision) {
      wanted = revision;
    } else if (has_pods(revision)) {
      others.push_back(revision);
    }
  }
  std::sort(others.begin(), others.end(), [](const Revision& left, const Revision& right) {
    return std::pair(routable_of(left), left.name) < std::pair(routable_of(right), right.name);
  });
  if (others.empty()) {
    Replicas replicas;
    for (const auto& [pool, count] : wanted.pools) replicas.try_emplace(pool, 0);
    for (const auto& [pool, its_target] : target.replicas) {
      replicas[pool] = grown(count_of(wanted, pool), its_target, rules);
    }
    plan.replicas[target.revision] = replicas;
    // Workers of others may still serve for an older revision.
    const bool is_alone =
        std::all_of(observed.begin(), observed.end(), [&](const Revision& revision) {
          return revision.name == target.revision || revision.lent == 0;
        });
    if (is_alone && is_complete(wanted, target.replicas)) plan.phase = Phase::Completed;
    plan.message = counts_text(wanted);
    return plan;
  }
  // The revision with the fewest workers ends first. The revision that it was moving to is not
  // wanted any more.
  const bool waits = others.size() > 1;
  const Plan step = waits ? shifted(others.front(), others.back(), target, rules)
                          : shifted(others.front(), wanted, target, rules);
  for (const auto& [name, replicas] : step.replicas) plan.replicas[name] = replicas;
  plan.message = step.message;
  if (waits)
    plan.message += ". Revision " + target.revision + " waits until revision " +
                    others.front().name + " is gone";
  return plan;
}

std::map<std::string, std::int64_t> frontends_of(std::int64_t frontends,
                                                 const RolloutTarget& target,
                                                 const std::vector<Revision>& observed) {
  std::map<std::string, std::int64_t> routable;
  routable[target.revision] = 0;
  std::int64_t all = 0;
  for (const Revision& revision : observed) {
    const std::int64_t its = routable_of(revision) + revision.lent;
    if (its > 0) routable[revision.name] = its;
    all += its;
  }
  std::map<std::string, std::int64_t> shares;
  for (const auto& [name, its] : routable) {
    const std::int64_t share = all == 0 ? frontends : (2 * frontends * its + all) / (2 * all);
    // The target and each revision that serves have a frontend, even if the share rounds to 0.
    shares[name] = frontends == 0 ? 0 : std::max<std::int64_t>(share, 1);
  }
  return shares;
}

}  // namespace sightline::plan
