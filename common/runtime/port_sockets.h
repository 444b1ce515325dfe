// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"

// The TCP sockets of this process that have a port on our side, for a library that keeps them to
// itself. Without a descriptor left to look for them, nothing is done. From any thread.
namespace sightline {

// Has those that listen take up nobody any more: the kernel drops what comes for them, so that
// clients connect no more and are not refused before the sockets are closed. (Linux: a listening
// socket's filter sees the packets of the handshake, tcp_filter() in net/ipv4/tcp_ipv4.c.)
void hold_off_connections(std::uint16_t port);
// Whether connections wait there to be accepted.
bool have_waiting_connections(std::uint16_t port);
// Ends the connections, without closing their descriptors: who reads or writes finds them ended.
void shut_connections(std::uint16_t port);

// All of that at the end of a library that accepts on threads of its own: nobody comes any more,
// and those who have come are taken up, within the longest time; `settling` is for the last of
// them.
void end_accepting(std::uint16_t port, Duration longest, Duration settling);

// A port of the host that was free a moment ago.
std::optional<std::uint16_t> free_port(const std::string& host);

}  // namespace sightline
