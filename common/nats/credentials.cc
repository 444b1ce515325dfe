// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/credentials.h"

#include <memory>
#include <optional>

#include <openssl/evp.h>

#include "common/base/bytes.h"
#include "common/base/nkey_text.h"
#include "common/nats/certificates.h"
#include "common/runtime/small_file.h"

namespace sightline::nats {
namespace {

// As in files of nsc. NATS itself reads the text below this line.
constexpr std::string_view kJwtHeading = "BEGIN NATS USER JWT";
// From nkeys (github.com/nats-io/nkeys), all in base32. A seed has two bytes that mean "seed" and
// "of a user", 32 bytes of Ed25519 seed, and CRC-16/XMODEM of these. A public key has one byte, 32
// bytes and the CRC.
constexpr std::uint8_t kSeedPrefix = 18 << 3;
constexpr std::uint8_t kUserPrefix = 20 << 3;
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSeedText = 58;

Error unusable(std::string_view what) {
  return client_error(ErrorCode::InvalidArgument, std::string(what));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

Result<Credentials> of_credentials_file(const std::string& path) {
  const std::string text = SL_TRY(runtime::read_small_file(path, kCredentialsBytesMax));
  return parse_credentials(text);
}

Result<Credentials> of_nkey_file(const std::string& path) {
  Credentials credentials;
  credentials.kind = Credentials::Kind::Nkey;
  const std::string text = SL_TRY(runtime::read_small_file(path, kCredentialsBytesMax));
  credentials.user = SL_TRY(nkey_of_seed(text));
  return credentials;
}

// OpenSSL opens these files itself, and would wait for the writer of a pipe.
Result<Done> check_readable(std::string_view setting, const std::string& path) {
  if (path.empty()) return Done{};
  const auto text = runtime::read_small_file(path, kCertificatesBytesMax);
  if (!text.ok()) return with_context(text.error(), setting);
  return Done{};
}

}  // namespace

Result<Credentials> read_credentials(const contract::NatsSettings& settings) {
  SL_TRY(check_readable("nats.ca_file", settings.ca_file));
  SL_TRY(check_readable("nats.cert_file", settings.cert_file));
  SL_TRY(check_readable("nats.key_file", settings.key_file));
  const bool has_file = !settings.credentials_file.empty();
  if (!has_file && settings.nkey_file.empty()) return Credentials{};
  auto read =
      has_file ? of_credentials_file(settings.credentials_file) : of_nkey_file(settings.nkey_file);
  if (read.ok()) return read;
  return with_context(std::move(read).error(),
                      has_file ? "nats.credentials_file" : "nats.nkey_file");
}

Result<Credentials> parse_credentials(std::string_view text) {
  Credentials credentials;
  if (text.find(kJwtHeading) != std::string_view::npos) {
    credentials.kind = Credentials::Kind::Jwt;
    return credentials;
  }
  const std::string_view line = trimmed(text);
  if (line.empty()) return unusable("the file is empty");
  if (line.find('\n') != std::string_view::npos) {
    return unusable("the file is neither a JWT with its seed nor one line");
  }
  const std::size_t colon = line.find(':');
  credentials.kind =
      colon == std::string_view::npos ? Credentials::Kind::Token : Credentials::Kind::Password;
  if (colon != std::string_view::npos) credentials.user = line.substr(0, colon);
  credentials.secret = colon == std::string_view::npos ? line : line.substr(colon + 1);
  return credentials;
}

Result<std::string> nkey_of_seed(std::string_view text) {
  const Error error = unusable("the file holds no seed of an nkey user");
  // In base32 the two first bytes of a user's seed begin with SU.
  const std::size_t begin = text.find("SU");
  if (begin == std::string_view::npos) return error;
  const auto seed = from_base32(text.substr(begin, kSeedText));
  if (!seed || seed->size() != 2 + kKeyBytes + 2 ||
      (*seed)[0] != (kSeedPrefix | (kUserPrefix >> 5U))) {
    return error;
  }
  // The CRC detects a damaged or mistyped seed.
  Bytes checked(seed->begin(), seed->end() - 2);
  add_crc(checked);
  if (checked != *seed) return error;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed->data() + 2, kKeyBytes),
      EVP_PKEY_free);
  Bytes shown(1 + kKeyBytes, kUserPrefix);
  std::size_t size = kKeyBytes;
  if (key == nullptr || EVP_PKEY_get_raw_public_key(key.get(), shown.data() + 1, &size) != 1) {
    return error;
  }
  add_crc(shown);
  return to_base32(shown);
}

}  // namespace sightline::nats
