// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/process_settings.h"
#include "common/runtime/metrics.h"

// When the certificates end by which a connection to NATS is made.
namespace sightline::nats {

inline constexpr std::size_t kCertificatesBytesMax = 1 << 20;  // of a file
inline constexpr std::size_t kCertificatesMax = 1024;          // of a file, that are looked at

// When the first of the certificates ends that stand in a PEM text (RFC 7468). Errors:
// InvalidArgument without any.
Result<WallTime> first_end(std::string_view pem);

// Looks at the files of the settings before each scrape: they may be replaced while we run. A file
// without a certificate has no series. `metrics` must outlive all scrapes.
void watch_certificates(const contract::NatsSettings& settings, runtime::Metrics& metrics);

}  // namespace sightline::nats
