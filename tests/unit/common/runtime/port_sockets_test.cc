// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/port_sockets.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/support/loopback.h"

namespace sightline {
namespace {

using test::ListeningSocket;
using test::Socket;

TEST(PortSockets, ConnectionsOfOnePortAreEndedAndNoOthers) {
  const ListeningSocket one;
  const ListeningSocket other;
  const Socket to_one;
  const Socket to_other;
  ASSERT_TRUE(to_one.connect_to(one.port()));
  ASSERT_TRUE(to_other.connect_to(other.port()));
  const Socket of_one(accept(one.fd(), nullptr, nullptr));
  const Socket of_other(accept(other.fd(), nullptr, nullptr));
  shut_connections(one.port());
  EXPECT_EQ(to_one.receive_all(), "");
  of_other.send_all("still there");
  shut_connections(other.port());
  EXPECT_EQ(to_other.receive_all(), "still there");
  const Socket next;
  EXPECT_TRUE(next.connect_to(one.port()));
}

TEST(PortSockets, AListenerThatIsHeldOffTakesUpNobodyAndKeepsWhoWaits) {
  const ListeningSocket held;
  const ListeningSocket other;
  const Socket early;
  ASSERT_TRUE(early.connect_to(held.port()));
  hold_off_connections(held.port());
  EXPECT_TRUE(have_waiting_connections(held.port()));
  EXPECT_FALSE(have_waiting_connections(other.port()));
  const Socket accepted(accept(held.fd(), nullptr, nullptr));
  const Socket late(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  EXPECT_FALSE(late.connect_to(held.port()));
  EXPECT_EQ(errno, EINPROGRESS);
  pollfd polled{.fd = late.fd(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(poll(&polled, 1, 100), 0) << "over loopback a handshake takes no time";
  EXPECT_FALSE(have_waiting_connections(held.port()));
  const Socket elsewhere;
  EXPECT_TRUE(elsewhere.connect_to(other.port()));
}

}  // namespace
}  // namespace sightline
