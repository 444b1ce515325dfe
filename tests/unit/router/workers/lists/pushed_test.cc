// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/lists/pushed.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace sightline::lists {
namespace {

using Names = std::vector<std::string>;

std::string body_of(const std::string& workers) {
  return R"({"revision":"r1","generation":7,"workers":)" + workers + "}";
}

contract::WorkerSpec worker(const std::string& fields) {
  auto spec = contract::parse_worker(fields);
  EXPECT_TRUE(spec.ok()) << fields;
  return *spec;
}

PushedWorkers list(std::uint64_t generation, const std::string& fields) {
  return {"r1", generation, {worker(fields)}};
}

TEST(PushedWorkers, AreReadWithTheFieldsOfTheFlag) {
  const auto pushed = parse_pushed_workers(
      body_of(R"([{"name":"a","url":"http://h:1","dp":2,"drain":true},{"url":"http://h:2"}])"));
  ASSERT_TRUE(pushed.ok()) << pushed.error().message;
  EXPECT_EQ(pushed->revision, "r1");
  EXPECT_EQ(pushed->generation, 7U);
  ASSERT_EQ(pushed->workers.size(), 2U);
  EXPECT_EQ(pushed->workers[0], worker("name=a,url=http://h:1,dp=2,drain=true"));
  EXPECT_EQ(pushed->workers[1], worker("url=http://h:2"));
}

TEST(PushedWorkers, MayBeNone) {
  const auto pushed = parse_pushed_workers(body_of("[]"));
  ASSERT_TRUE(pushed.ok());
  EXPECT_TRUE(pushed->workers.empty());
}

TEST(PushedWorkers, AreRefusedAsAWholeWithPlaceAndRule) {
  const struct {
    std::string body;
    std::string want;
  } cases[] = {
      {"", ""},
      {"[]", "the body must be"},
      {R"({"generation":1,"workers":[]})", "revision: must be"},
      {R"({"revision":"","generation":1,"workers":[]})", "revision: must be"},
      {R"({"revision":")" + std::string(64, 'r') + R"(","generation":1,"workers":[]})",
       "revision: must be"},
      {R"({"revision":"r","generation":0,"workers":[]})", "generation: must be"},
      {R"({"revision":"r","generation":1.5,"workers":[]})", "generation: must be"},
      {R"({"revision":"r","generation":1})", "workers: must be"},
      {R"({"revision":"r","generation":1,"workers":[],"worker":[]})", "unknown member \"worker\""},
      {R"({"revision":"r","revision":"s","generation":1,"workers":[]})",
       "\"revision\" occurs twice"},
      {body_of("[3]"), "workers[0]: must be an object"},
      {body_of(R"([{"url":"http://h:1"},{"name":"b"}])"), "workers[1]: "},
      {body_of(R"([{"url":"http://h:1","url":"http://h:2"}])"), "workers[0]: "},
      {body_of(R"([{"url":"http://h:1","api_key_file":"/etc/passwd"}])"),
       "workers[0]: api_key_file: a push must not name a file"},
      {body_of(R"([{"url":["http://h:1"]}])"), "workers[0]: url: must be a string"},
      {body_of(R"([{"name":"a","url":"http://h:1"},{"name":"a","url":"http://h:2"}])"),
       "workers[1]: another worker has the name a"},
  };
  for (const auto& [body, want] : cases) {
    const auto pushed = parse_pushed_workers(body);
    ASSERT_FALSE(pushed.ok()) << body;
    EXPECT_EQ(pushed.error().blame, Blame::Client);
    EXPECT_NE(pushed.error().message.find(want), std::string::npos) << pushed.error().message;
  }
}

TEST(PushedWorkers, AreBoundedInBytesAndNumber) {
  const auto long_body = parse_pushed_workers(std::string(kPushBytesMax + 1, ' '));
  ASSERT_FALSE(long_body.ok());
  EXPECT_EQ(long_body.error().code, ErrorCode::TooLarge);
  std::string many = "[";
  for (std::size_t i = 0; i <= kPushedWorkersMax; ++i) many += i == 0 ? "{}" : ",{}";
  const auto many_workers = parse_pushed_workers(body_of(many + "]"));
  ASSERT_FALSE(many_workers.ok());
  EXPECT_EQ(many_workers.error().code, ErrorCode::TooLarge);
}

TEST(PushedWorkers, TheDifferenceNamesEachWorkerOnce) {
  const auto kept = worker("name=kept,url=http://h:1");
  const auto gone = worker("name=gone,url=http://h:2");
  const auto fresh = worker("name=fresh,url=http://h:2");
  const auto result = difference({gone, kept, worker("name=other,url=http://h:3")},
                                 {fresh, worker("name=other,url=http://h:4"), kept});
  EXPECT_EQ(result.added, Names{"fresh"});
  EXPECT_EQ(result.removed, Names{"gone"});
  EXPECT_EQ(result.changed, Names{"other"});
  EXPECT_EQ(result.kept, Names{"kept"});
}

TEST(PushedWorkers, AreTakenOverByRevisionThenGeneration) {
  const PushedWorkers held = list(5, "url=http://h:1");
  EXPECT_EQ(judge("r1", nullptr, list(0, "url=http://h:1")), ListVerdict::TakeOver);
  EXPECT_EQ(judge("r2", nullptr, list(0, "url=http://h:1")), ListVerdict::OtherRevision);
  EXPECT_EQ(judge("r2", &held, list(6, "url=http://h:1")), ListVerdict::OtherRevision);
  EXPECT_EQ(judge("r1", &held, list(6, "url=http://h:1")), ListVerdict::TakeOver);
  EXPECT_EQ(judge("r1", &held, list(5, "url=http://h:1")), ListVerdict::Same);
  EXPECT_EQ(judge("r1", &held, list(5, "url=http://h:2")), ListVerdict::Forked);
  EXPECT_EQ(judge("r1", &held, list(4, "url=http://h:1")), ListVerdict::Older);
}

TEST(PushedWorkers, NoListIsTheLastThatCanBePushed) {
  const std::uint64_t last = std::numeric_limits<std::int64_t>::max();
  const PushedWorkers held = list(5, "url=http://h:1");
  EXPECT_EQ(judge("r1", nullptr, list(last, "url=http://h:1")), ListVerdict::TooFar);
  EXPECT_EQ(judge("r1", &held, list(last, "url=http://h:1")), ListVerdict::TooFar);
  EXPECT_EQ(judge("r1", &held, list(5 + kGenerationStepMax, "url=http://h:1")),
            ListVerdict::TakeOver);
  const PushedWorkers first = list(kFirstGenerationMax, "url=http://h:1");
  EXPECT_EQ(judge("r1", nullptr, first), ListVerdict::TakeOver);
  EXPECT_EQ(judge("r1", &first, list(kFirstGenerationMax + 1, "url=http://h:2")),
            ListVerdict::TakeOver);
}

}  // namespace
}  // namespace sightline::lists
