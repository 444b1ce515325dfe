// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/http/message.h"

namespace sightline::http {

// Bytes and messages of HTTP/1.1 (RFC 9112); no I/O.

struct DecodeLimits {
  std::size_t header_bytes_max = 65536;  // start line and fields, line ends included
  std::size_t header_fields_max = 100;
  std::size_t target_bytes_max = 8192;  // requests only
};

// What one step of decoding found in the input.
struct Step {
  enum class Kind {
    NeedMore,  // the rest of the input is the start of something: present it again with more
    Head,      // the header is complete
    Body,      // `body` is the next piece of the decoded body
    End,       // the message is complete; input behind it belongs to the next one
    Refused,   // not HTTP, ambiguous, or above a limit; see refusal()
  };
  Kind kind = Kind::NeedMore;
  std::size_t consumed = 0;  // bytes of the input that are done with
  std::string_view body;     // lies in the input; empty except for Body
};

// Why a message was refused. For requests, status is what to answer.
struct Malformed {
  int status = 400;
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string message;
  std::string limit;  // that was exceeded, as in Error
};

// Decodes requests, one after the other. Anything that two readers could understand differently
// is refused: duplicate or odd Content-Length, Content-Length with Transfer-Encoding, another
// transfer coding than a single "chunked", malformed chunks, a missing or repeated Host. A body of
// known length may also be read past the decoder: reset() then begins the next request.
class RequestDecoder {
 public:
  explicit RequestDecoder(const DecodeLimits& limits);
  ~RequestDecoder();

  void reset();
  // Decodes up to the next Step. Input begins where the former step's `consumed` ended.
  Step step(std::string_view input);

  // True once the first byte of a request, apart from empty lines, was seen.
  [[nodiscard]] bool begun() const;

  // After Head. method, target and headers may be moved from.
  [[nodiscard]] std::string& method();
  [[nodiscard]] std::string& target();
  [[nodiscard]] Headers& headers();
  [[nodiscard]] bool http11() const;  // else HTTP/1.0
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool chunked() const;
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

  [[nodiscard]] const Malformed& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes responses with the same strictness about framing.
class ResponseDecoder {
 public:
  explicit ResponseDecoder(const DecodeLimits& limits);
  ~ResponseDecoder();

  // Begins the next response; one to a HEAD request has no body whatever its header says.
  void reset(bool answers_head = false);
  Step step(std::string_view input);
  // The connection ended here: End, or Refused when the message is incomplete or was refused.
  Step end_of_input();

  // After Head.
  [[nodiscard]] int status() const;
  [[nodiscard]] const Headers& headers() const;
  [[nodiscard]] bool keep_alive() const;

  [[nodiscard]] const Malformed& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How a message's body ends.
struct Framing {
  enum class Kind { None, Length, Chunked, UntilClose };
  Kind kind = Kind::None;
  std::uint64_t bytes = 0;  // of Length
};

struct ResponseHead {
  int status = 200;
  const Headers* headers = nullptr;  // may be null; framing fields in it are left out
  Framing framing;
  bool http11 = true;  // of the request it answers
  bool keep_alive = true;
};

void append_response_head(std::string& out, const ResponseHead& head);

// A request's head for the given Host value; framing and host fields in head.headers are left out.
void append_request_head(std::string& out, const RequestHead& head, std::string_view host,
                         std::uint64_t body_bytes);

// The line that begins a chunk.
void append_chunk_head(std::string& out, std::size_t bytes);
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace sightline::http
