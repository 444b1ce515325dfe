// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/faults/fault.h"

#include <gtest/gtest.h>

#include "simulator/faults/fault_plan.h"

namespace sightline::faults {
namespace {

std::string refusal_of(std::string_view text) {
  const auto fault = parse_fault(text);
  return fault.ok() ? "" : fault.error().message;
}

TEST(Fault, ReadsAndWritesEveryField) {
  const auto fault = parse_fault("kind=drop,p=0.25,engine=3,count=7,ms=20,after=2,lost=true");
  ASSERT_TRUE(fault.ok());
  EXPECT_EQ(fault->kind, FaultKind::Drop);
  EXPECT_EQ(to_json(*fault),
            R"({"kind":"drop","p":0.25,"engine":3,"count":7,"ms":20,"after":2,"lost":true})");
  const auto document = json::Document::parse(to_json(*fault));
  ASSERT_TRUE(document.ok());
  const auto again = read_fault(document->root());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_json(*again), to_json(*fault));
}

TEST(Fault, ParsesEveryKindByName) {
  for (const std::string name :
       {"drop", "duplicate", "reorder", "delay", "restart", "forget", "die-midstream", "stall",
        "status500", "garbage", "wrong-block-size", "cut-replay", "slow-probe"}) {
    const auto fault = parse_fault("kind=" + name);
    ASSERT_TRUE(fault.ok()) << name;
    EXPECT_EQ(name_of(fault->kind), name);
  }
}

TEST(Fault, ReadsAndWritesTheRequestPrefix) {
  const auto fault = parse_fault("kind=restart,p=1,request=poison-");
  ASSERT_TRUE(fault.ok());
  EXPECT_EQ(fault->request, "poison-");
  EXPECT_NE(to_json(*fault).find(R"("request":"poison-")"), std::string::npos);
  EXPECT_NE(refusal_of("kind=restart,request=").find("request must be 1 to 128 characters"),
            std::string::npos);
}

TEST(Fault, StrikesOnlyTheRequestsThatItNames) {
  FaultPlan plan(1, system_clock());
  ASSERT_TRUE(plan.add(*parse_fault("kind=status500,request=poison-")).ok());
  EXPECT_FALSE(plan.draw(FaultKind::Status500, {.request = "c1-poison-2", .sequence = {}}));
  EXPECT_FALSE(plan.draw(FaultKind::Status500, {.request = "", .sequence = {}}));
  EXPECT_TRUE(plan.draw(FaultKind::Status500, {.request = "poison-2", .sequence = {}}));
}

TEST(Fault, GarbageTargetsEventsByDefault) {
  EXPECT_EQ(parse_fault("kind=garbage")->kind, FaultKind::GarbageEvents);
  EXPECT_EQ(parse_fault("target=http,kind=garbage")->kind, FaultKind::GarbageHttp);
}

TEST(Fault, RefusalNamesFieldAndAllowedValues) {
  EXPECT_EQ(refusal_of("p=1"), "fault: kind is missing");
  EXPECT_NE(refusal_of("kind=flood").find("Known kinds: drop, duplicate"), std::string::npos);
  EXPECT_EQ(refusal_of("kind=drop,p=1.5"), "fault: p must be within 0 … 1");
  EXPECT_EQ(refusal_of("kind=drop,p=nan"), "fault: p must be within 0 … 1");
  EXPECT_EQ(refusal_of("kind=drop,ms=-1"), "fault: ms must be a whole number up to 600000");
  EXPECT_EQ(refusal_of("kind=drop,often"), "fault: \"often\" is not of the form field=value");
  EXPECT_NE(refusal_of("kind=drop,rate=1").find("unknown field \"rate\""), std::string::npos);
  EXPECT_EQ(refusal_of("kind=stall,lost=true"), "fault: lost is for kind drop only");
  EXPECT_EQ(refusal_of("kind=stall,target=http"), "fault: target is for kind garbage only");
}

}  // namespace
}  // namespace sightline::faults
