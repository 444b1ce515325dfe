// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/template_call.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/support/template_goldens.h"

namespace sightline::chat {
namespace {

TEST(TemplateCall, RendersEveryGoldenConversationAsTransformersDoes) {
  const std::filesystem::path folder = test::in_sources("tests/data/templates");
  const test::TemplateGoldens goldens(folder / "conversations.jsonl", folder);
  ASSERT_EQ(goldens.families().size(), 16U);
  for (const std::string& family : goldens.families()) {
    const auto outcomes = goldens.run(family);
    EXPECT_EQ(outcomes.size(), 97U) << family;
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(outcome.passes) << family << " " << outcome.id << "\nexpected "
                                  << outcome.expected << "\ngot " << outcome.got;
    }
  }
}

}  // namespace
}  // namespace sightline::chat
