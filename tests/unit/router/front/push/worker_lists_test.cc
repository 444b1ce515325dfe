// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/worker_lists.h"

#include <gtest/gtest.h>

#include "router/front/push/put_guard.h"
#include "router/front/push/worker_routes.h"

namespace sightline::push {
namespace {

using admin_port::AdminResponse;
using contract::WorkerSpec;
using lists::ListSource;
using Workers = std::vector<WorkerSpec>;

WorkerSpec worker(const std::string& fields) { return *contract::parse_worker(fields); }

std::string body_of(std::uint64_t generation, const std::string& workers,
                    const std::string& revision = "r1") {
  return R"({"revision":")" + revision + R"(","generation":)" + std::to_string(generation) +
         R"(,"workers":)" + workers + "}";
}

constexpr const char* kA = R"([{"name":"a","url":"http://h:1"}])";
constexpr const char* kAb = R"([{"name":"a","url":"http://h:1"},{"name":"b","url":"http://h:2"}])";

class WorkerListsTest : public testing::Test {
 protected:
  AdminResponse put(const std::string& body) { return put_workers(lists, {.body = body}); }
  [[nodiscard]] bool counts(const std::string& line) const {
    return metrics.scrape().find(line) != std::string::npos;
  }
  [[nodiscard]] static bool has(const AdminResponse& answer, const std::string& part) {
    return answer.body.find(part) != std::string::npos;
  }

  mutable runtime::Metrics metrics;
  std::vector<Workers> handed_over;
  std::vector<std::uint64_t> told;
  WorkerLists lists{
      {.revision = "r1",
       .hand_over = [this](Workers w) { handed_over.push_back(std::move(w)); },
       .on_taken = [this](const lists::InForce& f) { told.push_back(f.generation()); },
       .metrics = metrics}};
};

TEST_F(WorkerListsTest, PushReplacesTheFileAndReturnsTheDifference) {
  lists.boot(Workers{worker("name=a,url=http://h:1"), worker("name=z,url=http://h:9")}, false);
  const auto answer = put(body_of(3, kAb));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(has(answer, R"({"verdict":"taken","source":"push","revision":"r1","generation":3,)"));
  EXPECT_TRUE(has(answer, R"("difference":{"added":["b"],"removed":["z"],"changed":[],"kept":1})"));
  ASSERT_EQ(handed_over.size(), 1U);
  EXPECT_EQ(handed_over[0].size(), 2U);
  EXPECT_EQ(told, std::vector<std::uint64_t>{3});
  EXPECT_TRUE(counts("sightline_worker_list_generation 3\n"));
  EXPECT_TRUE(counts("sightline_worker_list_source{source=\"push\"} 1\n"));
  EXPECT_TRUE(counts("sightline_worker_list_source{source=\"file\"} 0\n"));
}

TEST_F(WorkerListsTest, OtherVerdictsKeepAndNameTheHeldList) {
  lists.boot(Workers{}, false);
  ASSERT_EQ(put(body_of(3, kA)).status, 200);
  const struct {
    std::string body;
    int want_status;
    std::string want;
    std::string counted;
  } cases[] = {
      {body_of(3, kA), 200, R"({"verdict":"same")", "same"},
      {body_of(2, kAb), 409, "this router has a list of a later generation: 3", "older"},
      {body_of(3, kAb), 409, "this router has another list of generation 3", "forked"},
      {body_of(9, kAb, "r2"), 409, "has another revision than", "other-revision"},
      {"{", 400, "error", "malformed"},
      {std::string(lists::kPushBytesMax + 1, ' '), 413, "more than", "malformed"},
      {body_of(4, R"([{"name":"a/b","url":"http://h:1"}])"), 400, "workers[0]", "malformed"},
  };
  for (const auto& [body, want_status, want, counted] : cases) {
    const auto answer = put(body);
    EXPECT_EQ(answer.status, want_status) << answer.body;
    EXPECT_TRUE(has(answer, want)) << answer.body;
    if (answer.status == 409) {
      EXPECT_TRUE(has(answer, R"("held":{"source":"push","revision":"r1","generation":3)"))
          << answer.body;
    }
    EXPECT_TRUE(counts("sightline_pushes_total{what=\"workers\",result=\"" + counted + "\"}"))
        << counted;
  }
  EXPECT_EQ(handed_over.size(), 1U);
  EXPECT_EQ(lists.in_force()->workers.size(), 1U);
}

TEST_F(WorkerListsTest, FileReloadKeepsThePushedList) {
  lists.boot(Workers{worker("name=z,url=http://h:9")}, false);
  lists.reread(Workers{worker("name=y,url=http://h:8")});
  ASSERT_EQ(handed_over.size(), 1U);
  EXPECT_EQ(handed_over[0][0].name, "y");
  ASSERT_EQ(put(body_of(1, kA)).status, 200);
  lists.reread(Workers{worker("name=x,url=http://h:7")});
  lists.reread(client_error(ErrorCode::InvalidArgument, "router.yaml:3: no"));
  for (const Workers& workers : {handed_over.back(), lists.in_force()->workers}) {
    ASSERT_EQ(workers.size(), 1U);
    EXPECT_EQ(workers[0].name, "a");
  }
  for (const char* result : {"applied", "outranked", "refused"}) {
    EXPECT_TRUE(counts("sightline_config_reloads_total{result=\"" + std::string(result) + "\"} 1"))
        << result;
  }
}

TEST_F(WorkerListsTest, FileCountsOnlyAfterThePeers) {
  lists.boot(Workers{worker("name=z,url=http://h:9")}, true);
  EXPECT_EQ(lists.in_force()->source, ListSource::None);
  EXPECT_FALSE(lists.check().ok());
  lists.reread(Workers{worker("name=y,url=http://h:8")});
  EXPECT_TRUE(handed_over.empty());
  lists.boot_without_peers();
  lists.boot_without_peers();
  ASSERT_EQ(handed_over.size(), 1U);
  EXPECT_EQ(handed_over[0][0].name, "y");
  EXPECT_EQ(*lists.check(), "1 from flags, environment and file");
}

TEST_F(WorkerListsTest, EmptyFileIsAListButMissingFileIsNot) {
  lists.boot(std::nullopt, false);
  EXPECT_NE(lists.check().error().message.find("no list was pushed"), std::string::npos);
  lists.boot(std::nullopt, true);
  lists.boot_without_peers();
  EXPECT_FALSE(lists.check().ok());
  lists.boot(Workers{}, false);
  EXPECT_EQ(*lists.check(), "0 from flags, environment and file");
}

TEST_F(WorkerListsTest, PeerListReplacesTheFileUntilALaterPush) {
  lists.boot(Workers{worker("name=z,url=http://h:9")}, true);
  const auto taken = lists.offer(body_of(7, kA), ListSource::Peers);
  ASSERT_TRUE(taken.ok());
  lists.boot_without_peers();
  EXPECT_EQ(handed_over.size(), 1U);
  EXPECT_EQ(*lists.check(), "1 pushed to a peer, generation 7");
  EXPECT_EQ(put(body_of(6, kAb)).status, 409);
  EXPECT_EQ(put(body_of(8, kAb)).status, 200);
  EXPECT_EQ(*lists.check(), "2 pushed, generation 8");
  const auto late = lists.offer(body_of(7, kA), ListSource::Peers);
  EXPECT_EQ(late->verdict, lists::ListVerdict::Older);
  EXPECT_TRUE(counts("sightline_pushes_total{what=\"peers\",result=\"older\"} 1\n"));
}

TEST_F(WorkerListsTest, ShowsTheListAsPushed) {
  lists.boot(Workers{worker("name=z,url=http://h:9")}, false);
  EXPECT_EQ(get_worker_list(lists).body,
            R"({"source":"file","revision":null,"generation":null,"digest":null,"count":1,)"
            R"("pushed":null})");
  ASSERT_EQ(put(body_of(2, kA)).status, 200);
  EXPECT_TRUE(has(get_worker_list(lists), R"("pushed":)" + body_of(2, kA) + "}"));
}

TEST_F(WorkerListsTest, RefusesPushesWithoutATokenFile) {
  const auto guard = guarded("workers", nullptr, metrics, 0).guard;
  const auto refused = guard({.authorization = "Bearer 0123456789abcdef"});
  ASSERT_TRUE(refused.has_value());
  const AdminResponse& answer = *refused;
  EXPECT_EQ(answer.status, 403);
  EXPECT_TRUE(has(answer, "--admin-token-file")) << answer.body;
  EXPECT_TRUE(counts("sightline_pushes_total{what=\"workers\",result=\"unauthorized\"} 1\n"));
}

}  // namespace
}  // namespace sightline::push
