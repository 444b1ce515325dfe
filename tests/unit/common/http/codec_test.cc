// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/codec.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::http {
namespace {

constexpr DecodeLimits kLimits{
    .header_bytes_max = 1000, .header_fields_max = 10, .target_bytes_max = 100};

// The output of a decoder for a stream of bytes that arrives in pieces.
struct Decoded {
  std::string start;  // "METHOD target" or the status
  std::string fields;
  std::string body;
  bool whole = false;
  int refused = 0;
  std::string rest;

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

std::ostream& operator<<(std::ostream& out, const Decoded& decoded) {
  return out << decoded.start << " | " << decoded.fields << " | " << decoded.body << " | "
             << decoded.whole << " " << decoded.refused << " | " << decoded.rest;
}

std::string start_of(RequestDecoder& decoder) { return decoder.method() + " " + decoder.target(); }
std::string start_of(ResponseDecoder& decoder) { return std::to_string(decoder.status()); }

template <class Decoder>
std::string fields_of(Decoder& decoder) {
  std::string fields;
  for (const auto field : decoder.headers()) {
    fields += std::string(field.name) + "=" + std::string(field.value) + ";";
  }
  return fields;
}

template <class Decoder>
Decoded decode(const std::vector<std::string>& pieces) {
  Decoder decoder(kLimits);
  Decoded result;
  std::string buffer;
  for (const auto& piece : pieces) {
    buffer += piece;
    while (!result.whole) {
      const auto step = decoder.step(buffer);
      result.body += step.body;
      buffer.erase(0, step.consumed);
      if (step.kind == Step::Kind::NeedMore) break;
      if (step.kind == Step::Kind::Refused) {
        result.refused = decoder.refusal().status;
        EXPECT_FALSE(decoder.refusal().message.empty());
        return result;
      }
      if (step.kind == Step::Kind::Head) {
        result.start = start_of(decoder);
        result.fields = fields_of(decoder);
      }
      result.whole = step.kind == Step::Kind::End;
    }
  }
  result.rest = buffer;
  return result;
}

const std::vector<std::string> kSoundRequests{
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    "1;a=b\r\nh\r\n0A\r\n0123456789\r\n000\r\nContent-MD5: x\r\nHost: y\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "DELETE /x HTTP/1.1\r\nhOST: x\r\nA:\t b\t \r\n\r\n",
};

TEST(RequestDecoder, DecodesTheSameWhereverTheBytesAreSplit) {
  for (const auto& request : kSoundRequests) {
    const std::string next = "GET /next HTTP/1.1\r\n";
    const auto whole = decode<RequestDecoder>({request + next});
    EXPECT_TRUE(whole.whole) << request;
    EXPECT_EQ(whole.rest, next) << request;
    for (std::size_t i = 0; i <= request.size(); ++i) {
      ASSERT_EQ(decode<RequestDecoder>({request.substr(0, i), request.substr(i) + next}), whole)
          << i << request;
    }
    std::vector<std::string> bytes;
    for (const char byte : request + next) bytes.emplace_back(1, byte);
    auto bytewise = decode<RequestDecoder>(bytes);
    EXPECT_EQ(bytewise.rest, next);
    EXPECT_EQ(bytewise, whole);
  }
}

TEST(RequestDecoder, KeepsFieldsInOrderAndLeavesTrailersOut) {
  const auto decoded = decode<RequestDecoder>({kSoundRequests[5]});
  EXPECT_EQ(decoded.start, "POST /");
  EXPECT_EQ(decoded.fields, "Host=x;Transfer-Encoding=chunked;");
  EXPECT_EQ(decoded.body, "h0123456789");
  EXPECT_EQ(decode<RequestDecoder>({kSoundRequests[7]}).fields, "hOST=x;A=b;");
}

struct HostileCase {
  std::string name;
  std::string bytes;
  int want_status;
};

std::vector<HostileCase> hostile_requests() {
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  std::string many;
  for (int i = 0; i < 11; ++i) many += "A: b\r\n";
  return {
      {"TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01", 8) + "\r\n\r\n", 400},
      {"no version", "GET /\r\n\r\n", 400},
      {"version 2", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"two blanks", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"target with a control character", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", get + "Host: y\r\n\r\n", 400},
      {"two hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", 400},
      {"blank before colon", get + "A : b\r\n\r\n", 400},
      {"blank before the first name", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400},
      {"folded field", get + "A: b\r\n c\r\n\r\n", 400},
      {"folded last field", get + "A: b\r\n\tc: d\r\n\r\n", 400},
      {"folded length", post + "Content-Length:\r\n 5\r\n\r\nhello", 400},
      {"host with a path", "GET / HTTP/1.1\r\nHost: a b/..\\\r\n\r\n", 400},
      {"host with a user", "GET / HTTP/1.1\r\nHost: u:p@evil#x\r\n\r\n", 400},
      {"no colon", get + "A b\r\n\r\n", 400},
      {"NUL in a value", get + std::string("A: b\0c\r\n\r\n", 10), 400},
      {"bare CR in a value", get + "A: b\rc\r\n\r\n", 400},
      {"bare LF line ends", "GET / HTTP/1.1\nHost: x\n\n\r\n\r\n", 505},
      {"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
      {"two equal lengths", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
      {"length list", post + "Content-Length: 5, 5\r\n\r\nhello", 400},
      {"length with sign", post + "Content-Length: +5\r\n\r\nhello", 400},
      {"negative length", post + "Content-Length: -5\r\n\r\nhello", 400},
      {"hexadecimal length", post + "Content-Length: 0x5\r\n\r\nhello", 400},
      {"empty length", post + "Content-Length:\r\n\r\nhello", 400},
      {"length beyond 64 bits", post + "Content-Length: 18446744073709551616\r\n\r\n", 400},
      {"length and coding", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"coding and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
      {"two codings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"coding identity", post + "Transfer-Encoding: identity\r\n\r\n", 501},
      {"chunked not last", post + "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
      {"gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"hidden chunked", post + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {"coding with vertical tab", post + "Transfer-Encoding: \vchunked\r\n\r\n", 400},
      {"coding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"chunk size not hexadecimal", chunked + "xyz\r\nabc\r\n", 400},
      {"negative chunk size", chunked + "-5\r\nhello\r\n", 400},
      {"chunk size with 0x", chunked + "0x5\r\nhello\r\n0\r\n\r\n", 400},
      {"chunk size beyond 64 bits", chunked + "fffffffffffffffff\r\n", 400},
      {"empty chunk size", chunked + "\r\nhello\r\n", 400},
      {"chunk longer than its size", chunked + "3\r\nhello\r\n0\r\n\r\n", 400},
      {"chunk size ended by LF", chunked + "5\nhello\r\n0\r\n\r\n", 400},
      {"length in a trailer", chunked + "0\r\nContent-Length: 5\r\n\r\n", 400},
      {"long target", "GET /" + std::string(100, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
      {"endless target", "GET /" + std::string(500, 'a'), 414},
      {"endless method", std::string(500, 'A'), 414},
      {"long method", std::string(40, 'A') + " / HTTP/1.1\r\nHost: x\r\n\r\n", 501},
      {"long first line of no HTTP", "GET " + std::string(500, '^') + " HTT\r\n\r\n", 414},
      {"long header", get + "A: " + std::string(1000, 'a') + "\r\n\r\n", 431},
      {"endless header", get + "A: " + std::string(2000, 'a'), 431},
      {"many fields", get + many + "\r\n", 431},
      {"endless empty lines",
       [] {
         std::string lines;
         for (int i = 0; i < 600; ++i) lines += "\r\n";
         return lines;
       }(),
       431},
  };
}

TEST(RequestDecoder, RefusesHostileRequestsWithTheExactStatusInAnySplit) {
  for (const auto& test : hostile_requests()) {
    EXPECT_EQ(decode<RequestDecoder>({test.bytes}).refused, test.want_status) << test.name;
    std::vector<std::string> bytes;
    for (const char byte : test.bytes) bytes.emplace_back(1, byte);
    EXPECT_EQ(decode<RequestDecoder>(bytes).refused, test.want_status) << test.name;
    const auto half = test.bytes.size() / 2;
    EXPECT_EQ(decode<RequestDecoder>({test.bytes.substr(0, half), test.bytes.substr(half)}).refused,
              test.want_status)
        << test.name;
  }
}

TEST(RequestDecoder, SaysWhetherTheConnectionGoesOn) {
  const auto keeps = [](const std::string& head) {
    RequestDecoder decoder(kLimits);
    EXPECT_EQ(decoder.step(head).kind, Step::Kind::Head) << head;
    return decoder.keep_alive();
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: x\r\nConnection: x, Close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(RequestDecoder, BeginsTheNextMessageAfterReset) {
  RequestDecoder decoder(kLimits);
  const std::string first = "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(decoder.step(first).consumed, first.size());
  EXPECT_EQ(decoder.content_length(), 5U);
  decoder.reset();
  EXPECT_FALSE(decoder.begun());
  EXPECT_EQ(decoder.step("GET /2 HTTP/1.1\r\nHost: y\r\n\r\n").kind, Step::Kind::Head);
  EXPECT_EQ(decoder.target(), "/2");
  EXPECT_EQ(decoder.headers().size(), 1U);
  EXPECT_FALSE(decoder.content_length());
}

const std::vector<std::string> kSoundResponses{
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 503 Busy here\r\nContent-Length: 0\r\n\r\n",
};

TEST(ResponseDecoder, DecodesTheSameWhereverTheBytesAreSplit) {
  for (const auto& response : kSoundResponses) {
    const auto whole = decode<ResponseDecoder>({response + "HTTP"});
    EXPECT_TRUE(whole.whole) << response;
    EXPECT_EQ(whole.rest, "HTTP") << response;
    for (std::size_t i = 0; i <= response.size(); ++i) {
      ASSERT_EQ(decode<ResponseDecoder>({response.substr(0, i), response.substr(i) + "HTTP"}),
                whole)
          << i << response;
    }
  }
}

TEST(ResponseDecoder, EndOfInputEndsOnlyABodyWithoutLength) {
  const auto end_after = [](const std::string& bytes) {
    ResponseDecoder decoder(kLimits);
    std::string_view rest = bytes;
    for (auto step = decoder.step(rest); step.kind != Step::Kind::NeedMore;
         step = decoder.step(rest)) {
      rest.remove_prefix(step.consumed);
      if (step.kind == Step::Kind::End) break;
    }
    return decoder.end_of_input().kind;
  };
  EXPECT_EQ(end_after("HTTP/1.1 200 OK\r\n\r\nabc"), Step::Kind::End);
  EXPECT_EQ(end_after("HTTP/1.1 200 OK\r\n\r\n"), Step::Kind::End);
  EXPECT_EQ(end_after("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc"), Step::Kind::Refused);
  EXPECT_EQ(end_after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
            Step::Kind::Refused);
  EXPECT_EQ(end_after("HTTP/1.1 200"), Step::Kind::Refused);
  EXPECT_EQ(end_after(""), Step::Kind::Refused);
}

TEST(ResponseDecoder, EndOfInputDoesNotCompleteARefusedMessage) {
  ResponseDecoder decoder(kLimits);
  // Whole, and without a length: the end of input would be the end of its body.
  const std::string long_field(kLimits.header_bytes_max, 'x');
  ASSERT_EQ(decoder.step("HTTP/1.1 200 OK\r\na: " + long_field + "\r\n\r\n").kind,
            Step::Kind::Refused);
  EXPECT_EQ(decoder.end_of_input().kind, Step::Kind::Refused);
  EXPECT_EQ(decoder.refusal().limit, "header-bytes-max");
}

TEST(ResponseDecoder, ExpectsNoBodyInAnswerToHead) {
  ResponseDecoder decoder(kLimits);
  decoder.reset(true);
  EXPECT_EQ(decoder.step("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").kind, Step::Kind::Head);
  EXPECT_EQ(decoder.step("").kind, Step::Kind::End);
}

TEST(ResponseHead, CarriesItsFramingAndNotTheCallers) {
  const Headers headers{{"Content-Type", "a/b"}, {"content-LENGTH", "9"}, {"Connection", "x"}};
  std::string out;
  append_response_head(out, {.status = 404,
                             .headers = &headers,
                             .framing = {Framing::Kind::Length, 12},
                             .http11 = true,
                             .keep_alive = false});
  EXPECT_EQ(out,
            "HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\ncontent-length: 12\r\n"
            "connection: close\r\n\r\n");
  out.clear();
  append_response_head(out, {.status = 299, .headers = nullptr, .framing = {}, .http11 = false});
  EXPECT_EQ(out, "HTTP/1.1 299 Unknown\r\nconnection: keep-alive\r\n\r\n");
}

TEST(RequestHead, CarriesItsOwnHostAndLength) {
  std::string out;
  append_request_head(out,
                      {.method = "POST",
                       .target = "/v1?x",
                       .headers = {{"Host", "evil"}, {"A", "b"}, {"Transfer-Encoding", "chunked"}}},
                      "w0:8000", 7);
  EXPECT_EQ(out, "POST /v1?x HTTP/1.1\r\nhost: w0:8000\r\nA: b\r\ncontent-length: 7\r\n\r\n");
  out.clear();
  append_request_head(out, {.method = "GET", .target = "/", .headers = {}}, "h", 0);
  EXPECT_EQ(out, "GET / HTTP/1.1\r\nhost: h\r\n\r\n");
}

TEST(ChunkHead, IsTheSizeInHexadecimal) {
  std::string out;
  append_chunk_head(out, 0x1aF0);
  EXPECT_EQ(out, "1af0\r\n");
}

}  // namespace
}  // namespace sightline::http
