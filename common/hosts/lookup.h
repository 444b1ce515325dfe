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

// Why a name has no addresses, or only those that it had before.
enum class LookupFailure : std::uint8_t {
  None,
  Unknown,     // there is no such name, or it has no address
  Unanswered,  // no name server answers, or none is able to
};

struct Resolved {
  std::vector<asio::ip::address> addresses;     // the best first
  LookupFailure trouble = LookupFailure::None;  // with addresses: they are the last good ones
};

// The addresses of host names, for all threads that connect to engines. A name is looked up once
// at a time, however many wait for it; names do not wait for each other. What was found is used
// for a while. A look-up that nobody answers leaves the last good addresses in use; they
// are forgotten when the name is gone, as others may have got them.
// Thread safety: all methods from any thread.
class Lookup {
 public:
  struct Options {
    Duration good_age_max = std::chrono::seconds(10);     // addresses are reused so long
    Duration retry_after = std::chrono::seconds(1);       // a failure; it doubles
    Duration retry_after_max = std::chrono::seconds(10);  // up to this
    std::size_t names_max = 4096;     // known or asked for; beyond, the one unused longest goes
    std::size_t waiting_max = 65536;  // callbacks to come, of all names
  };
  using Done = std::function<void(const Resolved&)>;
  // Asks name servers and calls back once, on any thread, perhaps before it returns.
  using Ask = std::function<void(const std::string& name, Done done)>;

  // Asks the name servers of this machine (Servers), from the first name on. The clock and the
  // metrics, if any, outlive it.
  explicit Lookup(const Clock& clock, runtime::Metrics* metrics = nullptr);
  Lookup(const Options& options, Ask ask, const Clock& clock, runtime::Metrics* metrics);
  ~Lookup();  // as stop()
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  struct Answer {
    // While the name is asked for: what was known before. The callback will tell the rest.
    Resolved found;
    std::optional<Instant> asked_at = std::nullopt;  // since when it is asked for
  };
  // The addresses of a name; those of a numeric address, which are itself, at once. `later` is
  // called once where asked_at is set, and never else: quickly, on the thread of the look-ups,
  // perhaps before this returns. age_max: what was found longer ago is looked up anew, where that
  // is sooner than good_age_max.
  Answer find(const std::string& name, Done later, Duration age_max = Duration::max());

  // Ends what is under way. When it returns no callback runs, nor will one. Idempotent.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sightline::hosts
