// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/command/invocation.h"

#include <array>
#include <cstdlib>

#include <gtest/gtest.h>
#include <openssl/rand.h>
#include <unistd.h>

namespace sightline::command {
namespace {

constexpr int kWorks = 7;

// Replaces a thread that still runs when all exit handlers have run.
void use_openssl() {
  std::array<unsigned char, 8> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1) _exit(kWorks);
}

[[noreturn]] void end_a_process_that_used_openssl() {
  std::atexit(use_openssl);  // runs last, because it is the first
  std::array<char, 5> name{"name"};
  std::array<char*, 1> arguments{name.data()};
  begin_process(static_cast<int>(arguments.size()), arguments.data());
  std::array<unsigned char, 8> bytes{};
  static_cast<void>(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())));
  std::exit(0);
}

TEST(Invocation, LibraryThreadsMayUseOpenSslUntilTheProcessEnds) {
  EXPECT_EXIT(end_a_process_that_used_openssl(), testing::ExitedWithCode(kWorks), "");
}

}  // namespace
}  // namespace sightline::command
