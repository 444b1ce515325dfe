// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// Answers with a part that never ends.
#include <string>

#include <gtest/gtest.h>

#include "tests/integration/http/exchange_fixture.h"

namespace sightline::http {
namespace {

TEST_F(ExchangeTest, SkipsSomeInterimResponses) {
  std::string interim;
  for (int i = 0; i < 32; ++i) interim += "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  const auto answered = answer_with(interim + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
  EXPECT_EQ(answered.body, "a");
}

TEST_F(ExchangeTest, EndsAnAnswerThatConsistsOfInterimResponses) {
  serve([](RawListener& listener) {
    auto socket = listener.accept();
    socket.receive_until("body");
    std::string interim;
    for (int i = 0; i < 33; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
    socket.send(interim);
    EXPECT_EQ(socket.receive(), "");  // our side closes
  });
  EXPECT_EQ(run(call()).failure, Failure::TooLarge);
}

}  // namespace
}  // namespace sightline::http
