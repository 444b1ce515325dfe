// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/certificates.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/contract/metrics_replicas.h"
#include "common/runtime/small_file.h"

namespace sightline::nats {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

std::optional<WallTime> end_of(const X509& certificate) {
  std::tm broken_down{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &broken_down) != 1) return std::nullopt;
  return WallTime(std::chrono::seconds(timegm(&broken_down)));
}

void show(runtime::Metrics& metrics, std::string_view file, const std::string& path) {
  const auto text = runtime::read_small_file(path, kCertificatesBytesMax);
  const auto end = text.ok() ? first_end(*text) : Result<WallTime>(text.error());
  // A series of a file that cannot be read would show an old date.
  if (!end.ok()) return metrics.remove(contract::kNatsCertificateExpiry, {file});
  metrics.gauge(contract::kNatsCertificateExpiry, {file})
      .set(std::chrono::duration<double>(end->time_since_epoch()).count());
}

}  // namespace

Result<WallTime> first_end(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  std::optional<WallTime> first;
  for (std::size_t i = 0; i < kCertificatesMax; ++i) {
    const Certificate one(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
    if (one == nullptr) break;
    const auto end = end_of(*one);
    if (end) first = std::min(first.value_or(*end), *end);
  }
  ERR_clear_error();  // the error says only that there are no more certificates
  if (!first) return client_error(ErrorCode::InvalidArgument, "holds no certificate");
  return *first;
}

void watch_certificates(const contract::NatsSettings& settings, runtime::Metrics& metrics) {
  const auto watch = [&metrics](std::string_view file, const std::string& path) {
    if (path.empty()) return;
    metrics.before_scrape([&metrics, file, path] { show(metrics, file, path); });
  };
  watch("certificate", settings.cert_file);
  watch("authority", settings.ca_file);
}

}  // namespace sightline::nats
