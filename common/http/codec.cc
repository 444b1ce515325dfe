// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/codec.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "common/http/header_rules.h"

namespace sightline::http {
namespace {

namespace beast = boost::beast;
using beast::http::error;
using beast::http::field;

// Beast 1.74 asserts that at least this much of a last chunk is there. The header of a chunk with
// the bytes that must follow it is never shorter.
constexpr std::size_t kChunkHeadBytesMin = 5;
constexpr std::size_t kMethodBytesMax = 32;  // no registered method is this long
// What a request's first line has besides its target: method, version, two spaces.
constexpr std::size_t kFirstLineRestBytesMax = 64;
constexpr std::string_view kCrlf = "\r\n";

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

// The parser's results for the current message.
struct ParsedMessage {
  explicit ParsedMessage(const DecodeLimits& decode_limits) : limits(decode_limits) {}

  // Keeps the memory of the headers, because the next message needs as much.
  void reset() {
    const auto kept = limits;
    auto old_headers = std::move(headers);
    *this = ParsedMessage(kept);
    old_headers.clear();
    headers = std::move(old_headers);
  }

  DecodeLimits limits;
  std::string method;
  std::string target;
  Headers headers;
  int status = 0;
  bool http11 = true;
  bool start_line_done = false;
  bool head_done = false;
  bool finished = false;
  bool has_length = false;
  bool has_coding = false;
  std::size_t hosts = 0;
  std::size_t header_bytes = 0;
  std::uint64_t chunk_remaining = 0;
  std::string_view piece;
  std::optional<Malformed> refusal;
};

Malformed refusal_of(const beast::error_code& code) {
  using enum ErrorCode;
  if (code == error::bad_version) return {505, Unsupported, "the HTTP version is not 1.0 or 1.1"};
  if (code == error::bad_transfer_encoding) {
    return {
        400, InvalidArgument, "Transfer-Encoding is repeated or contradicts Content-Length", {}};
  }
  if (code == error::bad_content_length) {
    return {400, InvalidArgument, "Content-Length is not a single number", {}};
  }
  if (code == error::bad_chunk || code == error::bad_chunk_extension) {
    return {400, InvalidArgument, "a chunk of the body is malformed", {}};
  }
  if (code == error::bad_method || code == error::bad_target || code == error::bad_status ||
      code == error::bad_reason) {
    return {400, InvalidArgument, "the first line is not HTTP", {}};
  }
  if (code == error::partial_message) {
    return {400, InvalidArgument, "the message ends too early", {}};
  }
  return {400, InvalidArgument, "a header field is malformed", {}};
}

Malformed limit_refusal(int status, std::string what, std::string_view limit) {
  what.append(" (").append(limit).append(")");
  return {status, ErrorCode::TooLarge, std::move(what), std::string(limit)};
}

Malformed target_too_long(const DecodeLimits& limits) {
  const auto most = std::to_string(limits.target_bytes_max);
  return limit_refusal(414, "the request target exceeds " + most + " bytes", "target-bytes-max");
}

Malformed too_many_fields(const DecodeLimits& limits) {
  const auto most = std::to_string(limits.header_fields_max);
  return limit_refusal(431, "there are more than " + most + " header fields", "header-fields-max");
}

Malformed header_too_large(const DecodeLimits& limits) {
  const auto most = std::to_string(limits.header_bytes_max);
  return limit_refusal(431, "the header exceeds " + most + " bytes", "header-bytes-max");
}

template <bool is_request>
class Parser final : public beast::http::basic_parser<is_request> {
  using Base = beast::http::basic_parser<is_request>;
  using Code = beast::error_code;

 public:
  explicit Parser(ParsedMessage& message) : message_(message) {
    // Message counts the limits. Beast's header limit restarts with every call, and without a body
    // limit Beast refuses every Content-Length.
    this->header_limit(std::numeric_limits<std::uint32_t>::max());
    this->body_limit(std::numeric_limits<std::uint64_t>::max());
  }

 private:
  void refuse(Code& code, const Malformed& refusal) {
    // Beast only knows error codes, so the reason is stored beside it.
    message_.refusal = refusal;
    code = error::bad_field;
  }

  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, Code& code) override {
    if (method.size() > kMethodBytesMax) {
      return refuse(code, {501, ErrorCode::Unsupported, "the request method is too long", {}});
    }
    if (target.size() > message_.limits.target_bytes_max) {
      return refuse(code, target_too_long(message_.limits));
    }
    message_.method = view_of(method);
    message_.target = view_of(target);
    message_.http11 = version == 11;
    message_.start_line_done = true;
  }

  void on_response_impl(int status, beast::string_view, int version, Code&) override {
    message_.status = status;
    message_.http11 = version == 11;
    message_.start_line_done = true;
  }

  void on_field_impl(field name, beast::string_view text, beast::string_view value,
                     Code& code) override {
    // A trailer. No code reads it.
    if (message_.head_done) return;
    if (message_.headers.size() >= message_.limits.header_fields_max) {
      return refuse(code, too_many_fields(message_.limits));
    }
    // Readers differ in how they understand a repeated or odd Content-Length.
    if (name == field::content_length) {
      const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
      const bool number = std::all_of(value.begin(), value.end(), is_digit);
      if (std::exchange(message_.has_length, true) || !number) {
        code = error::bad_content_length;
        return;
      }
    }
    if (name == field::transfer_encoding) {
      // In HTTP/1.0 the field has no meaning, so a reader of that version would find another body.
      if (std::exchange(message_.has_coding, true) || !message_.http11) {
        code = error::bad_transfer_encoding;
        return;
      }
      if (!equal_names(view_of(value), "chunked")) {
        return refuse(code, {501,
                             ErrorCode::Unsupported,
                             "the only supported transfer coding is a single 'chunked'",
                             {}});
      }
    }
    if (is_request && name == field::host) {
      ++message_.hosts;
      if (!is_host_value(view_of(value))) {
        return refuse(code, {400, ErrorCode::InvalidArgument, "the Host field is malformed", {}});
      }
    }
    message_.headers.add(view_of(text), view_of(value));
  }

  void on_header_impl(Code& code) override {
    message_.head_done = true;
    // RFC 9112 section 3.2 demands this answer. Two readers could route by different fields.
    if (is_request && message_.hosts != 1 && (message_.http11 || message_.hosts > 1)) {
      refuse(code, {400, ErrorCode::InvalidArgument, "there is not exactly one Host field", {}});
    }
  }

  // The decoder returns pieces, so there is no body to prepare.
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Code&) override {}

  std::size_t on_body_impl(beast::string_view body, Code&) override {
    message_.piece = view_of(body);
    return body.size();
  }

  void on_chunk_header_impl(std::uint64_t size, beast::string_view, Code&) override {
    message_.chunk_remaining = size;
  }

  std::size_t on_chunk_body_impl(std::uint64_t remaining, beast::string_view body, Code&) override {
    message_.piece = view_of(body);
    message_.chunk_remaining = remaining - body.size();
    return body.size();
  }

  void on_finish_impl(Code&) override { message_.finished = true; }

  ParsedMessage& message_;
};

// A message and the parser that fills it, decoded step by step.
template <bool is_request>
struct Decoding {
  explicit Decoding(const DecodeLimits& limits) : message(limits) { parser.emplace(message); }

  void reset() {
    message.reset();
    parser.emplace(message);
  }

  Step step(std::string_view input) {
    // A refusal is final.
    if (message.refusal) return {Step::Kind::Refused, 0, {}};
    return message.head_done ? body_step(input) : head_step(input);
  }

  Step head_step(std::string_view input) {
    auto consumed = parser->got_some() ? 0 : empty_lines_bytes(input);
    beast::error_code code;
    const auto rest = input.substr(consumed);
    if (is_first_line_too_long(rest)) {
      return refused(target_too_long(message.limits));
    }
    // A lone CR may begin an empty line, which only the next byte shows.
    const bool half_line_end = is_request && !parser->got_some() && rest == "\r";
    if (rest.empty() || half_line_end) {
      code = error::need_more;
    } else {
      consumed += parser->put({rest.data(), rest.size()}, code);
    }
    message.header_bytes += consumed;
    // The unread part counts, or a header without an end would never reach the limit.
    if (code == error::need_more) {
      if (over_header_limit(input.size() - consumed)) return refused();
      return {Step::Kind::NeedMore, consumed, {}};
    }
    if (code) return refused(refusal_of(code));
    if (over_header_limit(0)) return refused();
    // The parser joins folded lines, but a server must refuse them (RFC 9112 section 5.2). The
    // parser reads a header's fields in one call, so the whole header is in this input.
    if (is_request && has_folded_line(input.substr(0, consumed))) {
      return refused({400, ErrorCode::InvalidArgument, "a header field is folded over lines", {}});
    }
    return {Step::Kind::Head, consumed, {}};
  }

  // Gives the same answer for a complete and an incomplete line, wherever its bytes were cut. The
  // parser may hold a complete first line back until the header is complete.
  bool is_first_line_too_long(std::string_view input) const {
    if (!is_request || message.start_line_done) return false;
    const auto line = input.substr(0, input.find(kCrlf));
    const std::size_t size = line.size() - (line.ends_with('\r') ? 1 : 0);
    return size > message.limits.target_bytes_max + kFirstLineRestBytesMax;
  }

  // A server ignores empty lines before a request line (RFC 9112 section 2.2).
  static std::size_t empty_lines_bytes(std::string_view input) {
    std::size_t bytes = 0;
    while (is_request && input.substr(bytes).starts_with(kCrlf)) bytes += kCrlf.size();
    return bytes;
  }

  Step body_step(std::string_view input) {
    std::size_t consumed = 0;
    for (;;) {
      if (message.finished) return {Step::Kind::End, consumed, {}};
      const auto rest = input.substr(consumed);
      // Beast needs a minimum of bytes there, see kChunkHeadBytesMin.
      const bool at_chunk_head = message.has_coding && message.chunk_remaining == 0;
      if (rest.empty() || (at_chunk_head && rest.size() < kChunkHeadBytesMin)) {
        return {Step::Kind::NeedMore, consumed, {}};
      }
      message.piece = {};
      beast::error_code code;
      consumed += parser->put({rest.data(), rest.size()}, code);
      if (code == error::need_more) return {Step::Kind::NeedMore, consumed, {}};
      if (code) return refused(refusal_of(code));
      // A put() without a piece has read framing only, so the loop goes on.
      if (!message.piece.empty()) return {Step::Kind::Body, consumed, message.piece};
    }
  }

  bool over_header_limit(std::size_t waiting) {
    if (message.header_bytes + waiting <= message.limits.header_bytes_max) return false;
    message.refusal = header_too_large(message.limits);
    return true;
  }

  Step refused() { return {Step::Kind::Refused, 0, {}}; }
  // A reason from the parser's callbacks is more exact.
  Step refused(const Malformed& refusal) {
    if (!message.refusal) message.refusal = refusal;
    return refused();
  }

  ParsedMessage message;
  std::optional<Parser<is_request>> parser;
};

const Malformed kNone{0, ErrorCode::Internal, {}, {}};

}  // namespace

struct RequestDecoder::State : Decoding<true> {
  using Decoding::Decoding;
};
struct ResponseDecoder::State : Decoding<false> {
  using Decoding::Decoding;
};

RequestDecoder::RequestDecoder(const DecodeLimits& limits)
    : state_(std::make_unique<State>(limits)) {}
RequestDecoder::~RequestDecoder() = default;
void RequestDecoder::reset() { state_->reset(); }
Step RequestDecoder::step(std::string_view input) { return state_->step(input); }
bool RequestDecoder::begun() const { return state_->parser->got_some(); }
std::string& RequestDecoder::method() { return state_->message.method; }
std::string& RequestDecoder::target() { return state_->message.target; }
Headers& RequestDecoder::headers() { return state_->message.headers; }
bool RequestDecoder::http11() const { return state_->message.http11; }
bool RequestDecoder::keep_alive() const { return state_->parser->keep_alive(); }
bool RequestDecoder::chunked() const { return state_->message.has_coding; }
std::optional<std::uint64_t> RequestDecoder::content_length() const {
  const auto length = state_->parser->content_length();
  return length ? std::optional(*length) : std::nullopt;
}
const Malformed& RequestDecoder::refusal() const {
  const auto& refusal = state_->message.refusal;
  return refusal ? *refusal : kNone;
}

ResponseDecoder::ResponseDecoder(const DecodeLimits& limits)
    : state_(std::make_unique<State>(limits)) {}
ResponseDecoder::~ResponseDecoder() = default;
void ResponseDecoder::reset(bool answers_head) {
  state_->reset();
  state_->parser->skip(answers_head);
}
Step ResponseDecoder::step(std::string_view input) { return state_->step(input); }
Step ResponseDecoder::end_of_input() {
  if (state_->message.refusal) return state_->refused();
  if (state_->message.finished) return {Step::Kind::End, 0, {}};
  beast::error_code code = error::partial_message;
  // put_eof() asserts that the message has begun.
  if (state_->parser->got_some()) state_->parser->put_eof(code);
  return code ? state_->refused(refusal_of(code)) : Step{Step::Kind::End, 0, {}};
}
int ResponseDecoder::status() const { return state_->message.status; }
const Headers& ResponseDecoder::headers() const { return state_->message.headers; }
bool ResponseDecoder::keep_alive() const { return state_->parser->keep_alive(); }
const Malformed& ResponseDecoder::refusal() const {
  const auto& refusal = state_->message.refusal;
  return refusal ? *refusal : kNone;
}

}  // namespace sightline::http
