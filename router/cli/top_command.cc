// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/command/command.h"
#include "common/runtime/shutdown.h"
#include "common/runtime/worker_thread.h"

#include "router/cli/admin_ports.h"
#include "router/cli/commands.h"
#include "router/cli/terminal.h"
#include "router/top/frame.h"
#include "router/top/top_facts.h"

namespace sightline::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

constexpr char kIntroduction[] =
    R"(sightline top: a live view of the routers' workers and of the routers' view of each other.

It reads /v1/workers, /v1/replicas, /metrics and /readyz of the given admin ports. Each router has a
row. Each worker has one row for all routers:
  READY     the number of routers for which the worker's blocks count
  LOAD      the sum of the routers' requests on the worker
  RUN+WAIT  running and waiting requests, as the engine reports them
  LAG       the delay of the worker's events
  DIGEST    the time since the router's index was last proved equal to the agent's blocks
q or Ctrl-C ends the program. On a pipe, the frames follow each other as plain text.

)";

constexpr milliseconds kKeyPause{100};    // between checks of keys and of the screen's size
constexpr milliseconds kPatience{3'000};  // limit for the answers of a round

struct TopSettings {
  std::string admin = "http://127.0.0.1:9090";
  milliseconds interval{2'000};
  bool once = false;
};

contract::SettingTable top_table(TopSettings& s) {
  contract::SettingTable table;
  table.add_text(
      {"top.admin", "admin", "URLS",
       "Admin ports of the routers, http://HOST[:PORT] with commas between, at most 32."},
      s.admin);
  table.add_duration({"top.interval", "interval", "TIME", "Time between two updates."}, s.interval,
                     {100ms, 1h});
  table.add_switch({"top.once", "once", "", "Shows one frame and ends."}, s.once);
  return table;
}

std::string time_of_day(const Clock& clock) {
  const auto since = clock.wall().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count() % 86'400;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%02d:%02d:%02d UTC", static_cast<int>(seconds / 3600),
                static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  return text.data();
}

// Reads all routers at each look, and compares a look with the one before.
class Looks {
 public:
  explicit Looks(std::vector<AdminPort> ports) : asked_(std::move(ports)) {}

  const std::vector<top::RouterFacts>& take() {
    std::vector<top::RouterFacts> next = ports_.ask(asked_, kPatience);
    const Instant now = system_clock().now();
    const double seconds = std::chrono::duration<double>(now - taken_at_).count();
    for (std::size_t i = 0; i < next.size(); ++i) {
      // A router without an answer at the last look has no counters to compare with.
      const bool has_before = i < facts_.size() && facts_[i].trouble.empty();
      if (next[i].trouble.empty()) {
        top::compare(next[i], has_before ? &facts_[i] : nullptr, seconds);
      }
    }
    facts_ = std::move(next);
    taken_at_ = now;
    return facts_;
  }
  [[nodiscard]] const std::vector<top::RouterFacts>& last() const { return facts_; }

 private:
  AdminPorts ports_;
  const std::vector<AdminPort> asked_;
  std::vector<top::RouterFacts> facts_;
  Instant taken_at_{};
};

std::vector<std::string> frame_of(const std::vector<top::RouterFacts>& facts,
                                  const top::Screen& screen, bool is_live) {
  return top::render(facts, screen, time_of_day(system_clock()), is_live ? "q ends" : "");
}

// Draws frames until a key, the stop, or the end of the output.
void watch(Looks& looks, milliseconds interval, const std::stop_token& stop) {
  const Terminal terminal;
  while (!stop.stop_requested()) {
    top::Screen drawn = Terminal::size();
    if (!terminal.draw(frame_of(looks.take(), drawn, terminal.is_live()))) return;
    const Instant next = system_clock().now() + interval;
    while (!stop.stop_requested() && system_clock().now() < next) {
      // Waits in short steps, to react to keys, to the stop and to a new size of the screen.
      const char key = terminal.wait_for_key(std::min<Duration>(kKeyPause, interval));
      // \x03 is Ctrl-C, which the terminal sends as a key.
      if (key == 'q' || key == 'Q' || key == '\x03') return;
      const top::Screen now = Terminal::size();
      const bool is_same = now.columns == drawn.columns && now.rows == drawn.rows;
      if (!is_same && !terminal.draw(frame_of(looks.last(), now, terminal.is_live()))) return;
      drawn = now;
    }
  }
}

}  // namespace

int top_command(const Invocation& invocation) {
  Shutdown shutdown;
  const command::Command command{"sightline top", kIntroduction};
  TopSettings settings;
  contract::SettingTable table = top_table(settings);
  const command::StartResult begun = begin(command, invocation, table);
  if (begun.status) return *begun.status;
  auto ports = parse_admin_ports(settings.admin);
  if (!ports.ok()) return fail(command, ports.error().message, 2);
  const auto leveled = start_log("error");
  if (!leveled.ok()) return fail(command, leveled.error().message, 2);
  Looks looks(std::move(*ports));
  if (settings.once) {
    for (const std::string& line : frame_of(looks.take(), Terminal::size(), false)) {
      std::printf("%s\n", line.c_str());
    }
    return 0;
  }
  WorkerThread watching("top", [&](const std::stop_token& stop) {
    watch(looks, settings.interval, stop);
    shutdown.request();
  });
  shutdown.on_stop("top", [&] {
    watching.request_stop();
    watching.join();
  });
  shutdown.wait();
  return 0;
}

}  // namespace sightline::cli
