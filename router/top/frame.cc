// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/top/frame.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

namespace sightline::top {
namespace {

// The worst state first.
constexpr std::array<std::string_view, 7> kStates = {
    "down", "suspect", "starting", "excluded", "unverified", "draining", "ready"};

std::size_t rank_of(std::string_view state) {
  return static_cast<std::size_t>(std::find(kStates.begin(), kStates.end(), state) -
                                  kStates.begin());
}

template <class... Values>
std::string format(const char* how, Values... values) {
  std::array<char, 512> buffer{};
  const int size = std::snprintf(buffer.data(), buffer.size(), how, values...);
  return {buffer.data(), std::min(static_cast<std::size_t>(std::max(size, 0)), buffer.size() - 1)};
}

// Cuts a text beyond `columns`. A '~' replaces the rest.
std::string cut(const std::string& text, std::size_t columns) {
  if (text.size() <= columns) return text;
  return columns == 0 ? "" : text.substr(0, columns - 1) + "~";
}

std::string percent(const std::optional<double>& ratio) {
  return ratio ? format("%.1f%%", *ratio * 100) : "-";
}

// A worker as all routers together see it.
struct Merged {
  WorkerFacts worker;
  std::size_t seen = 0;   // routers that have it.
  std::size_t ready = 0;  // of them, routers whose index counts it.
};

void add(Merged& merged, const WorkerFacts& worker) {
  WorkerFacts& all = merged.worker;
  const bool is_worse = rank_of(worker.state) < rank_of(all.state);
  if (merged.seen == 0 || is_worse) {
    all.name = worker.name;
    all.state = worker.state;
    all.reason = worker.reason;
  }
  ++merged.seen;
  if (worker.is_ready) ++merged.ready;
  // Each router counts its own requests, so they add up. The engine reports the rest to each
  // router, so the greatest value counts.
  all.in_flight += worker.in_flight;
  all.running = std::max(all.running, worker.running);
  all.waiting = std::max(all.waiting, worker.waiting);
  all.blocks = std::max(all.blocks, worker.blocks);
  const auto raise = [](auto& most, const auto& value) {
    if (value) most = std::max(most.value_or(0), *value);
  };
  raise(all.lag_ms, worker.lag_ms);
  raise(all.digest_age_ms, worker.digest_age_ms);
}

// Puts the workers that need attention first.
std::vector<Merged> merge(const std::vector<RouterFacts>& routers) {
  std::vector<Merged> workers;
  std::map<std::string_view, std::size_t> places;
  for (const RouterFacts& router : routers) {
    for (const WorkerFacts& worker : router.workers) {
      const auto [place, is_new] = places.try_emplace(worker.name, workers.size());
      if (is_new) workers.emplace_back();
      add(workers[place->second], worker);
    }
  }
  // A stable sort keeps equal workers at their rows from frame to frame.
  std::stable_sort(workers.begin(), workers.end(), [](const Merged& a, const Merged& b) {
    const bool a_well = a.ready == a.seen;
    const bool b_well = b.ready == b.seen;
    if (a_well != b_well) return b_well;
    const std::size_t a_rank = rank_of(a.worker.state);
    const std::size_t b_rank = rank_of(b.worker.state);
    if (a_rank != b_rank) return a_rank < b_rank;
    return a.worker.in_flight > b.worker.in_flight;
  });
  return workers;
}

std::string members_of(const RouterFacts& router) {
  if (!router.members) return "-";
  const MemberCounts& m = *router.members;
  std::string text = std::to_string(m.routers) + "r " + std::to_string(m.frontends) + "f " +
                     std::to_string(m.agents) + "a";
  if (m.unfit > 0) text += " " + std::to_string(m.unfit) + "!";
  return text;
}

constexpr const char* kRouterRow = "%-20s %-5s %-5s %5s %6s %6s %6s %-4s %s";

std::string row_of(const RouterFacts& router) {
  if (!router.trouble.empty()) {
    return format("%-20s %s", cut(router.address, 20).c_str(), router.trouble.c_str());
  }
  const std::string nats =
      !router.is_nats_connected ? "-" : (*router.is_nats_connected ? "up" : "down");
  const std::string rate = router.requests_per_s ? format("%.1f", *router.requests_per_s) : "-";
  return format(kRouterRow, cut(router.address, 20).c_str(), router.is_ready ? "yes" : "no",
                cut(router.list_source, 5).c_str(), short_count(router.generation).c_str(),
                short_count(router.active).c_str(), rate.c_str(), percent(router.hit_ratio).c_str(),
                nats.c_str(), members_of(router).c_str());
}

constexpr const char* kWorkerRow = "%-22s %-10s %5s %6s %11s %7s %6s %6s";

std::string row_of(const Merged& merged) {
  const WorkerFacts& w = merged.worker;
  const std::string ready = std::to_string(merged.ready) + "/" + std::to_string(merged.seen);
  const std::string queue = short_count(w.running) + "+" + short_count(w.waiting);
  return format(kWorkerRow, cut(w.name, 22).c_str(), cut(w.state, 10).c_str(), ready.c_str(),
                short_count(w.in_flight).c_str(), queue.c_str(), short_count(w.blocks).c_str(),
                short_time(w.lag_ms).c_str(), short_time(w.digest_age_ms).c_str());
}

// Sums up the workers without a row: "12 more: 10 ready, 2 down".
std::string rest_of(const std::vector<Merged>& workers, std::size_t shown) {
  std::map<std::size_t, std::pair<std::string_view, std::size_t>> states;
  for (std::size_t i = shown; i < workers.size(); ++i) {
    auto& [name, count] = states[rank_of(workers[i].worker.state)];
    name = workers[i].worker.state;
    ++count;
  }
  std::string text = std::to_string(workers.size() - shown) + " more:";
  for (auto state = states.rbegin(); state != states.rend(); ++state) {
    text += (text.back() == ':' ? " " : ", ") + std::to_string(state->second.second) + " " +
            std::string(state->second.first);
  }
  return text;
}

std::string summary_of(const std::vector<RouterFacts>& routers,
                       const std::vector<Merged>& workers) {
  std::uint64_t active = 0;
  std::optional<double> rate;
  double hit = 0;
  std::size_t told = 0;
  for (const RouterFacts& router : routers) {
    active += router.active;
    if (router.requests_per_s) rate = rate.value_or(0) + *router.requests_per_s;
    if (router.hit_ratio) hit += *router.hit_ratio;
    if (router.hit_ratio) ++told;
  }
  const auto ready = std::count_if(workers.begin(), workers.end(),
                                   [](const Merged& m) { return m.ready == m.seen; });
  std::uint64_t blocks = 0;
  for (const Merged& merged : workers) blocks += merged.worker.blocks;
  std::string text = "requests " + (rate ? format("%.1f/s", *rate) : "-");
  text += "  active " + std::to_string(active) + "  hit ";
  text += percent(told > 0 ? std::optional(hit / static_cast<double>(told)) : std::nullopt);
  text += "  workers " + std::to_string(ready) + "/" + std::to_string(workers.size()) + " ready";
  return text + "  blocks " + short_count(blocks);
}

std::string first_line(const std::vector<RouterFacts>& routers, std::size_t columns,
                       const std::string& title) {
  const auto answering = std::count_if(routers.begin(), routers.end(),
                                       [](const RouterFacts& r) { return r.trouble.empty(); });
  std::string line = "sightline top: " + std::to_string(answering) + " of " +
                     std::to_string(routers.size()) + " admin ports answer";
  // A narrow screen leaves the title out.
  if (line.size() + 1 + title.size() <= columns) {
    line += std::string(columns - line.size() - title.size(), ' ') + title;
  }
  return line;
}

void add_routers(std::vector<std::string>& lines, const std::vector<RouterFacts>& routers,
                 std::size_t rows) {
  lines.push_back(format(kRouterRow, "ROUTER", "READY", "LIST", "GEN", "ACTIVE", "REQ/S", "HIT",
                         "NATS", "MEMBERS"));
  const bool fits = routers.size() <= rows;
  const std::size_t shown = fits ? routers.size() : rows - 1;
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(row_of(routers[i]));
  if (!fits) lines.push_back(std::to_string(routers.size() - shown) + " more");
}

// Adds the workers, then the reasons of some that are not ready, in at most `rows` rows.
void add_workers(std::vector<std::string>& lines, const std::vector<Merged>& workers,
                 std::size_t rows) {
  if (rows < 2) return;
  lines.push_back(format(kWorkerRow, "WORKER", "STATE", "READY", "LOAD", "RUN+WAIT", "BLOCKS",
                         "LAG", "DIGEST"));
  std::vector<std::string> reasons;
  const std::size_t reasons_max = std::min<std::size_t>(3, rows / 4);
  for (const Merged& m : workers) {
    if (m.worker.reason.empty() || reasons.size() == reasons_max) break;
    reasons.push_back(m.worker.name + ": " + m.worker.reason);
  }
  const std::size_t room = rows - 1 - reasons.size();
  const bool fits = workers.size() <= room;
  const std::size_t shown = fits ? workers.size() : room - 1;
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(row_of(workers[i]));
  if (!fits) lines.push_back(rest_of(workers, shown));
  lines.insert(lines.end(), reasons.begin(), reasons.end());
}

}  // namespace

std::string short_count(std::uint64_t count) {
  constexpr std::array<const char*, 6> kUnits = {"k", "M", "G", "T", "P", "E"};
  if (count < 10'000) return std::to_string(count);
  auto value = static_cast<double>(count) / 1000;
  std::size_t unit = 0;
  // Rounding would show 999.95 as 1000.0, which has six characters.
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return value < 99.95 ? format("%.1f%s", value, kUnits.at(unit))
                       : format("%.0f%s", value, kUnits.at(unit));
}

std::string short_time(const std::optional<std::uint64_t>& ms) {
  if (!ms) return "-";
  const auto value = static_cast<double>(*ms);
  if (*ms < 1000) return std::to_string(*ms) + "ms";
  if (*ms < 99'950) return format("%.1fs", value / 1000);
  if (*ms < 100 * 60'000) return std::to_string(*ms / 60'000) + "m";
  if (*ms < 1000ULL * 3'600'000) return std::to_string(*ms / 3'600'000) + "h";
  return ">999h";
}

std::vector<std::string> render(const std::vector<RouterFacts>& routers, const Screen& screen,
                                const std::string& title, const std::string& footer) {
  const std::size_t columns = std::max(screen.columns, kColumnsMin);
  const std::size_t rows = std::max(screen.rows, kRowsMin);
  const std::vector<Merged> workers = merge(routers);
  std::vector<std::string> lines{first_line(routers, columns, title), summary_of(routers, workers),
                                 ""};
  add_routers(lines, routers, std::max<std::size_t>(2, rows / 4));
  lines.emplace_back();
  const std::size_t footer_rows = footer.empty() ? 0 : 1;
  const std::size_t used = lines.size() + footer_rows;
  add_workers(lines, workers, rows > used ? rows - used : 0);
  if (!footer.empty()) {
    lines.resize(rows - 1);
    lines.push_back(footer);
  }
  for (std::string& line : lines) {
    line = cut(line, columns);
    // Columns end with padding, which plain output does not need.
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

}  // namespace sightline::top
