// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fakes/raw_socket.h"

namespace sightline::cluster {

struct Answer {
  int status = 0;
  std::string header;
  std::string body;  // chunks joined
};

inline std::uint16_t port_of(std::string_view url) {
  return static_cast<std::uint16_t>(std::stoi(std::string(url.substr(url.rfind(':') + 1))));
}

inline std::string join_chunks(std::string_view chunked) {
  std::string out;
  while (!chunked.empty()) {
    const std::size_t line = chunked.find("\r\n");
    const std::size_t size = std::stoul(std::string(chunked.substr(0, line)), nullptr, 16);
    if (size == 0) break;
    out += chunked.substr(line + 2, size);
    chunked.remove_prefix(line + 2 + size + 2);
  }
  return out;
}

struct Question {
  std::string method = "POST";
  std::string path = "/v1/chat/completions";
  std::string body;
  std::string content_type = "application/json";
  std::string more_headers;  // lines with their CRLF
};

inline std::string wire_text_of(const Question& question) {
  return question.method + " " + question.path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
         "Content-Type: " + question.content_type + "\r\n" + question.more_headers +
         "Content-Length: " + std::to_string(question.body.size()) + "\r\n\r\n" + question.body;
}

// Sends one request on a connection of its own.
inline Answer ask(const std::string& url, const Question& question) {
  auto socket = fakes::RawSocket::connect(port_of(url));
  socket.send(wire_text_of(question));
  Answer answer;
  answer.header = socket.receive_until("\r\n\r\n");
  answer.status = std::stoi(answer.header.substr(9, 3));
  const std::string rest = socket.receive_all();
  const bool chunked = answer.header.find("hunked") != std::string::npos;
  answer.body = chunked ? join_chunks(rest) : rest;
  return answer;
}

inline Answer get(const std::string& url, const std::string& path) {
  return ask(url, {.method = "GET", .path = path, .body = {}});
}

}  // namespace sightline::cluster
