// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/subjects.h"

#include <set>

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

// Whether NATS accepts it as one token without wildcards, and logs can show it.
bool is_plain_token(const std::string& token) {
  if (token.empty()) return false;
  for (const char c : token) {
    if (c <= ' ' || c >= 127 || c == '.' || c == '*' || c == '>') return false;
  }
  return true;
}

TEST(SubjectToken, KeepsPlainNames) {
  EXPECT_EQ(subject_token("worker-3b4a0fee"), "worker-3b4a0fee");
  EXPECT_EQ(subject_token("Qwen_2:8000"), "Qwen_2:8000");
}

TEST(SubjectToken, WritesWhatMeansSomethingToNatsAsHexDigits) {
  EXPECT_EQ(subject_token("a.b"), "a%2Eb");
  EXPECT_EQ(subject_token(">"), "%3E");
  EXPECT_EQ(subject_token("*"), "%2A");
  EXPECT_EQ(subject_token("a b\r\n"), "a%20b%0D%0A");
  EXPECT_EQ(subject_token("%2E"), "%252E");
  EXPECT_EQ(subject_token("\xC3\xA9"), "%C3%A9");
  EXPECT_EQ(subject_token(std::string_view("\0", 1)), "%00");
  EXPECT_EQ(subject_token(""), "%");
}

TEST(SubjectToken, EachByteGivesADifferentToken) {
  std::set<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = subject_token(std::string(1, static_cast<char>(byte)));
    EXPECT_TRUE(is_plain_token(token)) << byte;
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 256u);
}

TEST(SubjectToken, LongNamesAreBoundedAndStayDifferent) {
  std::set<std::string> tokens;
  std::size_t names = 0;
  for (const char filler : {'a', '.'}) {
    for (std::size_t size = 50; size < 260; ++size) {
      for (const char last : {'x', 'y', '>'}) {
        const std::string token = subject_token(std::string(size, filler) + last);
        EXPECT_LE(token.size(), kSubjectTokenBytesMax);
        EXPECT_TRUE(is_plain_token(token)) << token;
        tokens.insert(token);
        ++names;
      }
    }
  }
  EXPECT_EQ(tokens.size(), names);
  EXPECT_LE(subject_token(std::string(10'000'000, '*')).size(), kSubjectTokenBytesMax);
}

TEST(SubjectToken, ANameThatLooksLikeAShortenedOneIsAnother) {
  const std::string shortened = subject_token(std::string(1000, 'a'));
  EXPECT_NE(subject_token(shortened), shortened);
}

TEST(Subjects, AreTheseOfAnOrdinaryScope) {
  const Subjects subjects("prod/qwen", "7");
  EXPECT_EQ(subjects.events("w0", 3), "sl.prod.qwen.7.kv.w0.3");
  EXPECT_EQ(subjects.asks("w0", 3), "sl.prod.qwen.7.ask.w0.3");
  EXPECT_EQ(subjects.replies("r:1"), "sl.prod.qwen.7.to.r:1");
  EXPECT_EQ(subjects.load(), "sl.prod.qwen.7.load");
  EXPECT_EQ(subjects.load_asks(), "sl.prod.qwen.7.ask-load");
  EXPECT_EQ(subjects.members(), "sl.prod.qwen.7.members");
  EXPECT_EQ(subjects.all_members(), "sl.prod.qwen.*.members");
}

TEST(Subjects, HostileNamesStayWithinTheirPlace) {
  for (const std::string& name :
       {std::string("a.b"), std::string(">"), std::string("*"), std::string("x/y"),
        std::string("\r\nPUB a 0\r\n"), std::string(), std::string(4000, '>')}) {
    const Subjects subjects("prod/" + name, name);
    for (const std::string& subject :
         {subjects.events(name, 4'294'967'295), subjects.asks(name, 0), subjects.replies(name)}) {
      EXPECT_TRUE(subject.starts_with("sl.prod.")) << subject;
      EXPECT_EQ(subject.find_first_of(" \r\n*>"), std::string::npos) << subject;
      EXPECT_EQ(subject.find(".."), std::string::npos) << subject;
      EXPECT_LT(subject.size(), 1000u);
    }
    const std::string events = subjects.events(name, 1);
    EXPECT_EQ(std::count(events.begin(), events.end(), '.'), 6) << events;
  }
}

TEST(Subjects, ScopesThatDifferShareNoPrefix) {
  const std::string one = Subjects("a.b/c", "0").members();
  const std::string other = Subjects("a/b.c", "0").members();
  EXPECT_NE(one, other);
  EXPECT_EQ(one, "sl.a%2Eb.c.0.members");
  EXPECT_EQ(other, "sl.a.b%2Ec.0.members");
  EXPECT_EQ(Subjects("alone", "").members(), "sl.alone.%.%.members");
}

}  // namespace
}  // namespace sightline::contract
