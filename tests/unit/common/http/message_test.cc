// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/message.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::http {
namespace {

std::string text_of(const Headers& headers) {
  std::string text;
  for (const auto field : headers) {
    text += std::string(field.name) + "=" + std::string(field.value) + ";";
  }
  return text;
}

TEST(Headers, FindNamesInAnyCaseAndKeepOrderAndCase) {
  Headers headers{{"Content-Type", "a"}, {"X-Two", "1"}, {"x-two", "2"}};
  EXPECT_EQ(headers.find("content-TYPE"), "a");
  EXPECT_EQ(headers.find("x-two"), "1");
  EXPECT_FALSE(headers.find("x-tw"));
  EXPECT_EQ(text_of(headers), "Content-Type=a;X-Two=1;x-two=2;");
  headers.set("X-TWO", "3");
  EXPECT_EQ(text_of(headers), "Content-Type=a;X-TWO=3;");
  headers.remove("content-type");
  EXPECT_EQ(text_of(headers), "X-TWO=3;");
  headers.clear();
  EXPECT_EQ(headers.size(), 0U);
}

TEST(Headers, NeverCarryWhatWouldBreakTheFraming) {
  Headers headers;
  headers.add("a", std::string_view("b\r\nEvil: c\0", 11));
  EXPECT_EQ(headers.find("a"), "b  Evil: c ");
  headers.add("a\nb", "");
  EXPECT_TRUE(headers.find("a b"));
}

TEST(Headers, FindTokensInLists) {
  const Headers headers{{"Connection", "keep-alive , X-Own"}, {"connection", "close"}};
  EXPECT_TRUE(headers.has_token("connection", "x-own"));
  EXPECT_TRUE(headers.has_token("connection", "Close"));
  EXPECT_FALSE(headers.has_token("connection", "own"));
  EXPECT_FALSE(headers.has_token("other", "close"));
}

TEST(EndToEnd, RemovesHopByHopFieldsAndThoseConnectionNames) {
  const Headers headers{{"Authorization", "Bearer k"},
                        {"Connection", "close, X-Hop"},
                        {"Keep-Alive", "timeout=5"},
                        {"Proxy-Authorization", "x"},
                        {"TE", "trailers"},
                        {"Trailer", "x"},
                        {"Transfer-Encoding", "chunked"},
                        {"Upgrade", "h2c"},
                        {"x-hop", "1"},
                        {"Content-Type", "a/b"}};
  EXPECT_EQ(text_of(end_to_end(headers)), "Authorization=Bearer k;Content-Type=a/b;");
}

TEST(Headers, DropsFieldsOfOneHopThatConnectionDoesNotName) {
  Headers headers{{"TE", "trailers"}, {"a", "1"}, {"Proxy-Authorization", "k"}, {"b", "2"}};
  headers.remove("a");
  EXPECT_EQ(text_of(end_to_end(headers)), "b=2;");
}

TEST(Request, SplitsItsTargetInEveryForm) {
  struct Case {
    std::string target, path, query;
  };
  for (const auto& test : std::vector<Case>{{"/", "/", ""},
                                            {"/a/b?c=d&e", "/a/b", "c=d&e"},
                                            {"/a?", "/a", ""},
                                            {"/a?b?c", "/a", "b?c"},
                                            {"http://h:1/a?b", "/a", "b"},
                                            {"http://h", "/", ""},
                                            {"http://h?x", "/", "x"},
                                            {"/a?u=http://x/y", "/a", "u=http://x/y"},
                                            {"/a#f?x", "/a", "x"},
                                            {"*", "*", ""}}) {
    Request request;
    request.target = test.target;
    EXPECT_EQ(request.path(), test.path) << test.target;
    EXPECT_EQ(request.query(), test.query) << test.target;
  }
}

}  // namespace
}  // namespace sightline::http
