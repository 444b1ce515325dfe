// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/certificates.h"

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

namespace sightline::nats {
namespace {

// Self-signed certificates, made for these tests. Their keys do not exist.
constexpr std::int64_t kEarlyEnd = 1'893'436'597;  // 2029-12-31T18:36:37Z
constexpr char kEarly[] = R"(-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUMHhlmocV187G9SPm8I1wxmVSb8wwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAeFw0yNjExMjYxODM2MzdaFw0yOTEyMzExODM2Mzda
MA8xDTALBgNVBAMMBHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARC9F3q
7rMYfMZ7fUHIlJhtykcRIdjNnm2dGRfLfNT1ACc5v1jwA/B+5Yi2+2vGmbpPaW2E
IRDRz6gCX0VtfwTfo1MwUTAdBgNVHQ4EFgQUWcqnynaX5vIR1CTfUO5W8ATd+kUw
HwYDVR0jBBgwFoAUWcqnynaX5vIR1CTfUO5W8ATd+kUwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiA0+KjRNBvx2zkqRTKXuwDA1P6buCFry0+YXpWj
wGqNOQIhALa5bM9flA6nHrWCMlndlZe6d9ybtYKpD6XJnS2uFLId
-----END CERTIFICATE-----
)";
constexpr std::int64_t kLateEnd = 2'208'969'397;  // 2039-12-31T18:36:37Z
constexpr char kLate[] = R"(-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUeFHym3wTGxXexhbAdIDCdNamoiQwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAeFw0yNjExMjYxODM2MzdaFw0zOTEyMzExODM2Mzda
MA8xDTALBgNVBAMMBHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATP+UZq
3ocadXxo2oPwDBJffbKsPmmvSb+mlGiFuI2G8efEB3hxsXFRJ7m6g03T3U7+306J
efRDJCavsMA4Mes4o1MwUTAdBgNVHQ4EFgQUj//AYfo5cUg9afCahF2qHmILnw0w
HwYDVR0jBBgwFoAUj//AYfo5cUg9afCahF2qHmILnw0wDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiApwd/3rV2S0RSIubW74fu9F/qcjm5yUPo/8bId
Y7o7GQIhALEM6VMjsiDg/4786mVFSrdoz1ZD7l3m+CKsgFUvUk74
-----END CERTIFICATE-----
)";
constexpr char kSeries[] = "sightline_nats_certificate_expiry_timestamp_seconds{";

WallTime at(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

TEST(Certificates, EarliestEndCountsInAnyOrder) {
  const auto late = first_end(kLate);
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(*late, at(kLateEnd));
  for (const auto& text : {std::string(kEarly) + kLate, std::string(kLate) + kEarly}) {
    const auto both = first_end(text);
    ASSERT_TRUE(both.ok());
    EXPECT_EQ(*both, at(kEarlyEnd));
  }
}

TEST(Certificates, TextWithoutACertificateIsRefused) {
  EXPECT_FALSE(first_end("").ok());
  EXPECT_FALSE(first_end("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").ok());
}

TEST(Certificates, ScrapesReadTheFileAndDropAnUnreadableOne) {
  const std::string path = testing::TempDir() + "certificates_test.pem";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  contract::NatsSettings settings;
  settings.cert_file = path;
  runtime::Metrics metrics;
  watch_certificates(settings, metrics);
  const auto has = [&](const std::string& text) {
    return metrics.scrape().find(text) != std::string::npos;
  };
  write(kLate);
  EXPECT_TRUE(has(kSeries + std::string(R"(file="certificate"} 2208969397)")));
  write(kEarly);
  EXPECT_TRUE(has(kSeries + std::string(R"(file="certificate"} 1893436597)")));
  write("nothing");
  EXPECT_FALSE(has(kSeries));
  std::remove(path.c_str());
  EXPECT_FALSE(has(kSeries));
}

}  // namespace
}  // namespace sightline::nats
