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

#include "operator/kube/config/api_connection.h"
#include "operator/kube/config/exec_credential.h"

namespace sightline::config {

// The most bytes of a token and of a PEM file.
inline constexpr std::size_t kTokenBytesMax = 64 << 10;
inline constexpr std::size_t kPemBytesMax = 1 << 20;

// The material of a TLS connection. A change closes the connections made with the old one.
struct TlsMaterial {
  // PEM. Empty: the system's.
  std::string authority;
  // PEM. Empty: no certificate.
  std::string certificate;
  // PEM.
  std::string key;
  friend bool operator==(const TlsMaterial&, const TlsMaterial&) = default;
};

// The credentials of a request.
struct Presented {
  // Authorization and Impersonate-….
  std::vector<std::pair<std::string, std::string>> headers;
  // The same pointer as long as the material is unchanged.
  std::shared_ptr<const TlsMaterial> tls;
};

// The identity of this process for the API server. Reads files again as they change, and runs
// plugins again when their credentials expire.
// Thread safety: all methods from any thread. Sometimes one call reads small files or runs the
// plugin, while the others wait.
class Credentials {
 public:
  // A file must be read again within a minute. This is ten seconds earlier.
  static constexpr Duration kReadAfter = std::chrono::seconds(50);

  // How to read files and to run the plugin. Tests replace them.
  struct Deps {
    std::function<Result<std::string>(const std::string& path, std::size_t bytes_max)> read;
    std::function<Result<std::string>(const ExecPlugin&, const std::string& info)> run;
  };
  // Reads real files and runs real plugins.
  static Deps machine();

  // The clock must outlive it.
  Credentials(Connection connection, const Clock& clock, Deps sources = machine());

  // The present credentials. If something cannot be read again, the last value stays, and the
  // failure is logged. Errors: nothing could be read so far.
  Result<Presented> present();
  // The server refused the credentials of a request that began at this time. Older values are read
  // again.
  void on_unauthorized(Instant request_started);

 private:
  struct CachedText {
    std::string text;
    Instant read_at{};
  };

  // The text of a file or of the configuration. Updates `held`.
  Result<std::string> current(const Pem& source, std::optional<CachedText>& held,
                              std::size_t bytes_max) SL_REQUIRES(mutex_);
  Result<std::string> token() SL_REQUIRES(mutex_);
  Result<Done> renew_exec() SL_REQUIRES(mutex_);

  const Connection connection_;
  const Clock& clock_;
  const Deps sources_;
  // Held while files are read, because no call can continue without them.
  Mutex mutex_;
  std::optional<CachedText> token_ SL_GUARDED_BY(mutex_);
  std::optional<CachedText> authority_ SL_GUARDED_BY(mutex_);
  std::optional<CachedText> certificate_ SL_GUARDED_BY(mutex_);
  std::optional<CachedText> key_ SL_GUARDED_BY(mutex_);
  std::optional<ExecCredential> exec_ SL_GUARDED_BY(mutex_);
  Instant exec_at_ SL_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsMaterial> tls_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::config
