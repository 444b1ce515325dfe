// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/result.h"

#include "operator/kube/config/connection.h"
#include "operator/kube/config/exec_credential.h"

namespace sightline::config {

inline constexpr std::size_t kTokenBytesMax = 64 << 10;
inline constexpr std::size_t kPemBytesMax = 1 << 20;

// What a TLS connection is made with. Connections made with another one are closed.
struct TlsMaterial {
  std::string authority;    // PEM; empty: the system's
  std::string certificate;  // PEM; empty: none
  std::string key;          // PEM
  friend bool operator==(const TlsMaterial&, const TlsMaterial&) = default;
};

// What a request is sent with.
struct Presented {
  std::vector<std::pair<std::string, std::string>> headers;  // Authorization, Impersonate-…
  std::shared_ptr<const TlsMaterial> tls;  // the same pointer for as long as nothing changed
};

// Who we are to the API server, read again as files change and plugins' credentials expire.
// Thread safety: all methods from any thread. One of them at times reads small files, or runs the
// plugin, while the others wait.
class Credentials {
 public:
  // A file is read again after a minute, ten seconds early.
  static constexpr Duration kReadAfter = std::chrono::seconds(50);

  // How files are read and the plugin is run.
  struct Sources {
    std::function<Result<std::string>(const std::string& path, std::size_t bytes_max)> read;
    std::function<Result<std::string>(const ExecPlugin&, const std::string& info)> run;
  };
  static Sources machine();

  // The clock must outlive it.
  Credentials(Connection connection, const Clock& clock, Sources sources = machine());

  // What is current. What cannot be read again stays as it was, which is logged. Errors: nothing
  // could be read so far.
  Result<Presented> present();
  // The server refused what was presented for a request of that time: read anew what is older.
  void on_unauthorized(Instant request_started);

 private:
  struct Held {
    std::string text;
    Instant read_at{};
  };

  // The text of a file or of the configuration, from `held`, which it brings up to date.
  Result<std::string> current(const Pem& source, std::optional<Held>& held, std::size_t bytes_max)
      SL_REQUIRES(mutex_);
  Result<std::string> token() SL_REQUIRES(mutex_);
  Result<Done> renew_exec() SL_REQUIRES(mutex_);

  const Connection connection_;
  const Clock& clock_;
  const Sources sources_;
  Mutex mutex_;  // held while files are read: nobody can go on without them
  std::optional<Held> token_ SL_GUARDED_BY(mutex_);
  std::optional<Held> authority_ SL_GUARDED_BY(mutex_);
  std::optional<Held> certificate_ SL_GUARDED_BY(mutex_);
  std::optional<Held> key_ SL_GUARDED_BY(mutex_);
  std::optional<ExecCredential> exec_ SL_GUARDED_BY(mutex_);
  Instant exec_at_ SL_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsMaterial> tls_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::config
