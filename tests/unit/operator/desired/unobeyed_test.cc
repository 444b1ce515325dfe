// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/unobeyed.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

TEST(Unobeyed, AnOrdinarySpecIsObeyed) { EXPECT_TRUE(unobeyed(test::small_spec()).empty()); }

TEST(Unobeyed, EachFieldIsNamedWithWhatHappensInstead) {
  crd::Spec spec = test::small_spec();
  spec.model.chat_template = crd::ConfigMapRef{.config_map = "c", .key = "k"};
  spec.multimodal.processor["min_pixels"] = 1;
  spec.kv.events = crd::EventsMode::Approximate;
  spec.pools[0].role = crd::Role::Prefill;
  const auto fields = unobeyed(spec);
  ASSERT_EQ(fields.size(), 4U);
  EXPECT_TRUE(fields[0].starts_with("spec.model.chatTemplate: "));
  EXPECT_TRUE(fields[1].starts_with("spec.multimodal.processor: "));
  EXPECT_TRUE(fields[2].starts_with("spec.kv.events: "));
  EXPECT_TRUE(fields[3].starts_with("spec.pools[0].role: "));
}

}  // namespace
}  // namespace sightline::desired
