// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/process_identity.h"

#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/runtime/entropy.h"
#include "common/runtime/small_file.h"

#include "router/replicas/membership/announcement.h"

namespace sightline::process {
namespace {

// The file has 64 digits. The rest is room for white space around them.
constexpr std::size_t kKeyFileBytesMax = 4096;

}  // namespace

Result<contract::IdentityKey> load_identity(const contract::IdentitySettings& settings) {
  const std::string& path = settings.key_file;
  if (path.empty()) {
    log(LogLevel::Warn,
        "--identity-key-file is not set: images and blocks get names from the public development "
        "key. In production, set a file of 32 random bytes");
    return contract::development_identity_key();
  }
  const auto content = runtime::read_small_file(path, kKeyFileBytesMax);
  if (!content.ok()) {
    return Error{ErrorCode::InvalidArgument,
                 Blame::Internal,
                 false,
                 "--identity-key-file " + path + " " + content.error().message,
                 {},
                 {}};
  }
  auto key = contract::parse_identity_key(*content);
  // The error names the file, never its content.
  if (!key.ok()) return with_context(std::move(key).error(), "--identity-key-file " + path);
  return key;
}

std::string keys_identity(const contract::IdentityKey& key, const std::string& model_digest,
                          const std::string& scope_model) {
  return "key " + membership::key_check_of(key) + ", model files " + model_digest.substr(0, 16) +
         ", model name " + (scope_model.empty() ? "(none)" : scope_model);
}

std::string process_name(const std::string& configured, std::uint16_t port) {
  if (!configured.empty()) return configured;
  constexpr std::size_t kHostNameMax = 256;
  std::array<char, kHostNameMax> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::string_view name = utf8_prefix(host.data(), kHostNameMax);  // others show it in JSON
  return std::string(name.empty() ? "localhost" : name) + ":" +
         (port != 0 ? std::to_string(port) : "pid" + std::to_string(::getpid()));
}

std::string instance_name(const std::string& name) {
  constexpr std::size_t kNamePartMax = 100;
  std::string instance;
  for (const char c : name.substr(0, kNamePartMax)) {
    const bool is_kept = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         std::string_view("._:-").find(c) != std::string_view::npos;
    instance += is_kept ? c : '_';
  }
  return instance + "-" + to_hex(runtime::secure_random_u64());
}

}  // namespace sightline::process
