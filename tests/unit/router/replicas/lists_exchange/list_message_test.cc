// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/lists_exchange/list_message.h"

#include <gtest/gtest.h>

namespace sightline::lists_exchange {
namespace {

const Message kMessages[] = {ListAsk{1, 2, 3, 4, 5, 6}, ListReply{1, 2, 3, 4, 5},
                             ListChunk{1, 2, 3, 4, "{\"a\":1}"}};

TEST(ListMessages, AreReadAsTheyWereWritten) {
  for (const Message& message : kMessages) {
    const auto read = decode(encode(message));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, message);
  }
}

TEST(ListMessages, CutOrLongOrUnknownOnesAreRefused) {
  for (const Message& message : kMessages) {
    const std::string bytes = encode(message);
    const std::size_t whole = std::holds_alternative<ListChunk>(message) ? 30 : bytes.size();
    for (std::size_t i = 0; i < whole; ++i) EXPECT_FALSE(decode(bytes.substr(0, i)).ok()) << i;
    if (std::holds_alternative<ListChunk>(message))
      continue;  // its bytes end where the message does
    EXPECT_FALSE(decode(bytes + "x").ok());
  }
  EXPECT_FALSE(decode("\x03").ok());
  EXPECT_FALSE(decode(encode(ListChunk{1, 2, 3, 4, std::string(kPartBytesMax + 1, 'x')})).ok());
}

}  // namespace
}  // namespace sightline::lists_exchange
