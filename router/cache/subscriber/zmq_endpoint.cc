// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/zmq_endpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace sightline::subscriber {

namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::size_t kNameBytesMax = 253;  // RFC 1035
// The words of libzmq for an endpoint that it refuses.
constexpr std::string_view kInvalid = "Invalid argument";

bool is_name(std::string_view host) {
  const auto is_fit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !host.empty() && host.size() <= kNameBytesMax &&
         std::all_of(host.begin(), host.end(), is_fit);
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

bool is_numeric(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  asio::error_code code;
  asio::ip::make_address(std::string(host), code);
  return !code;
}

}  // namespace

Result<ZmqEndpoint> ZmqEndpoint::parse(std::string_view which, std::string text) {
  ZmqEndpoint endpoint;
  endpoint.text_ = std::move(text);
  const std::string_view whole = endpoint.text_;
  if (!whole.starts_with(kTcp)) return endpoint;
  // "tcp://SOURCE;HOST:PORT": libzmq treats the source as an interface of this machine.
  const auto source = whole.rfind(';');
  const auto begin = source == whole.npos ? kTcp.size() : source + 1;
  // The last colon: an IPv6 address has colons too.
  const auto colon = whole.rfind(':');
  if (colon < begin || colon == whole.npos) return endpoint_refused(which, kInvalid);
  const auto host = whole.substr(begin, colon - begin);
  // An address needs no look-up.
  if (is_numeric(host)) return endpoint;
  if (!is_name(host) || !is_port(whole.substr(colon + 1))) return endpoint_refused(which, kInvalid);
  endpoint.before_ = whole.substr(0, begin);
  endpoint.name_ = host;
  endpoint.after_ = whole.substr(colon);
  return endpoint;
}

ZmqEndpoint ZmqEndpoint::to_bind(std::string text) {
  ZmqEndpoint endpoint;
  endpoint.text_ = std::move(text);
  return endpoint;
}

std::string ZmqEndpoint::at(const asio::ip::address& address) const {
  const auto host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  return before_ + host + after_;
}

Error endpoint_refused(std::string_view which, std::string_view reason) {
  return client_error(ErrorCode::InvalidArgument,
                      std::string(which) + " endpoint cannot be used (" + std::string(reason) +
                          "): write it as tcp://host:port, tcp://[address]:port or ipc://path");
}

}  // namespace sightline::subscriber
