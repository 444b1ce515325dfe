// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/lists/list_in_force.h"

#include <gtest/gtest.h>

namespace sightline::lists {
namespace {

using contract::WorkerSpec;

WorkerSpec worker(const std::string& fields) {
  auto spec = contract::parse_worker(fields);
  EXPECT_TRUE(spec.ok()) << fields;
  return *spec;
}

std::shared_ptr<const PushedList> pushed(std::uint64_t generation, const std::string& fields) {
  PushedWorkers list{"r", generation, {worker(fields)}};
  const std::uint64_t digest = digest_of(list);
  return std::make_shared<const PushedList>(PushedList{std::move(list), "{}", digest});
}

TEST(ListInForce, IsThatOfTheFileUntilOneIsPushed) {
  const InForce none;
  EXPECT_EQ(none.source, ListSource::None);
  const InForce boot = with_boot(none, {worker("name=a,url=http://h:1")});
  EXPECT_EQ(boot.source, ListSource::File);
  EXPECT_EQ(boot.generation(), 0U);
  const InForce again = with_boot(boot, {worker("name=b,url=http://h:2")});
  EXPECT_EQ(again.workers, std::vector{worker("name=b,url=http://h:2")});
}

TEST(ListInForce, PushedListStaysAfterAFileChange) {
  const InForce boot = with_boot({}, {worker("name=a,url=http://h:1")});
  const InForce now = with_push(boot, pushed(3, "name=p,url=http://h:9"), ListSource::Push);
  EXPECT_EQ(now.source, ListSource::Push);
  EXPECT_EQ(now.generation(), 3U);
  const InForce reread = with_boot(now, {worker("name=z,url=http://h:5")});
  EXPECT_EQ(reread.source, ListSource::Push);
  EXPECT_EQ(reread.workers, std::vector{worker("name=p,url=http://h:9")});
  EXPECT_EQ(reread.boot, std::vector{worker("name=z,url=http://h:5")});
}

TEST(ListInForce, KeyGoesOnlyToUrlsOfTheLocalFile) {
  const InForce boot = with_boot({}, {worker("name=a,url=http://h:1,api_key_file=/k/1")});
  const InForce same = with_push(boot, pushed(1, "name=other,url=http://h:1"), ListSource::Push);
  EXPECT_EQ(same.workers.at(0).api_key_file, "/k/1");
  EXPECT_EQ(same.pushed->list.workers.at(0).api_key_file, "");
  for (const char* elsewhere : {"name=a,url=http://h:2", "name=a,url=http://evil:1"}) {
    const InForce other = with_push(boot, pushed(1, elsewhere), ListSource::Push);
    EXPECT_EQ(other.workers.at(0).api_key_file, "") << elsewhere;
  }
  const InForce rotated = with_boot(same, {worker("name=a,url=http://h:1,api_key_file=/k/2")});
  EXPECT_EQ(rotated.workers.at(0).api_key_file, "/k/2");
}

TEST(ListInForce, DigestDistinguishesLists) {
  const auto digest = [](std::uint64_t generation, const std::string& fields) {
    return pushed(generation, fields)->digest;
  };
  EXPECT_EQ(digest(1, "name=a,url=http://h:1"), digest(1, "url=http://h:1,name=a"));
  EXPECT_NE(digest(1, "name=a,url=http://h:1"), digest(2, "name=a,url=http://h:1"));
  EXPECT_NE(digest(1, "name=a,url=http://h:1"), digest(1, "name=a,url=http://h:2"));
  PushedWorkers ab{"r", 1, {worker("name=a,url=http://h:1"), worker("name=b,url=http://h:2")}};
  PushedWorkers ba{"r", 1, {ab.workers[1], ab.workers[0]}};
  EXPECT_NE(digest_of(ab), digest_of(ba));
}

TEST(ListInForce, EverySourceHasAName) {
  for (const ListSource source : kSources) EXPECT_FALSE(name_of(source).empty());
  EXPECT_EQ(name_of(ListSource::Peers), "peers");
}

}  // namespace
}  // namespace sightline::lists
