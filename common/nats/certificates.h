// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/process_settings.h"
#include "common/runtime/metrics.h"

// The expiry of the certificates that a connection to NATS uses.
namespace sightline::nats {

// The most bytes of a file.
inline constexpr std::size_t kCertificatesBytesMax = 1 << 20;
// The most certificates of a file that are read.
inline constexpr std::size_t kCertificatesMax = 1024;

// The earliest end of the certificates in a PEM text (RFC 7468). Errors: InvalidArgument if the
// text has no certificate.
Result<WallTime> first_end(std::string_view pem);

// Reads the files of the settings before each scrape, because they may be replaced while the
// process runs. A file without a certificate has no series. `metrics` must outlive all scrapes.
void watch_certificates(const contract::NatsSettings& settings, runtime::Metrics& metrics);

}  // namespace sightline::nats
