// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/ip/address.hpp>

#include "common/base/clock.h"
#include "common/runtime/metrics.h"

namespace sightline::hosts {

// Why a name has no addresses, or only addresses of an earlier look-up.
enum class LookupFailure : std::uint8_t {
  None,
  // The name does not exist, or has no address.
  Unknown,
  // No name server answers, or the servers cannot answer.
  Unanswered,
};

// The result of a look-up.
struct Resolved {
  // The best address is first.
  std::vector<asio::ip::address> addresses;
  // If there are addresses too, they are the last good ones.
  LookupFailure trouble = LookupFailure::None;
};

// The addresses of host names, for all threads that connect to engines. At most one look-up of a
// name is active, even if many callers wait for it. Names do not wait for each other.
//
// Addresses are used for good_age_max. If no name server answers, the last good addresses stay in
// use. If the name does not exist, they are dropped, because another machine may have them.
// Thread safety: all methods from any thread.
class Lookup {
 public:
  struct Options {
    // How long addresses are used.
    Duration good_age_max = std::chrono::seconds(10);
    // The pause after a failure. It doubles with each further failure.
    Duration retry_after = std::chrono::seconds(1);
    // The longest pause.
    Duration retry_after_max = std::chrono::seconds(10);
    // The most names. Beyond, the name that was unused for longest is dropped.
    std::size_t names_max = 4096;
    // The most pending callbacks of all names.
    std::size_t waiting_max = 65536;
  };
  using Done = std::function<void(const Resolved&)>;
  // Asks name servers and calls back once, on any thread, perhaps before it returns.
  using Ask = std::function<void(const std::string& name, Done done)>;

  // Asks the name servers of this machine (Servers). They start with the first name. The clock, and
  // the metrics if given, outlive it.
  explicit Lookup(const Clock& clock, runtime::Metrics* metrics = nullptr);
  // With another way to ask name servers.
  Lookup(const Options& options, Ask ask, const Clock& clock, runtime::Metrics* metrics);
  // Calls stop().
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  // The known state of a name.
  struct LookupState {
    // During a look-up: the earlier result. The callback brings the new one.
    Resolved found;
    // Since when a look-up is active. Nothing: no look-up is active.
    std::optional<Instant> asked_at = std::nullopt;
  };
  // Returns the addresses of a name. A numeric address gives itself, without a look-up. `later` is
  // called only if asked_at is set, and then once, on the thread of the look-ups, perhaps before
  // this returns. It must not wait. Results older than age_max are looked up again, if age_max is
  // below good_age_max.
  LookupState find(const std::string& name, Done later, Duration age_max = Duration::max());

  // Ends active look-ups. When it returns, no callback runs or will run. Further calls have no
  // effect.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sightline::hosts
