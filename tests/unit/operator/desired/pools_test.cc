// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/pools.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

crd::Spec spec_with_autoscaling() {
  crd::Spec spec = test::small_spec();
  spec.pools[0].autoscaling = crd::PoolAutoscaling{.min_replicas = 2, .max_replicas = 6};
  return spec;
}

TEST(Pools, TheReplicasBelongToWhoScalesThem) {
  const auto objects = pool_objects(test::render_input_of(spec_with_autoscaling()));
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(objects[0].at({"metadata", "name"}).text(), "shop-a");
  EXPECT_EQ(objects[0]["spec"].to_text(),
            R"({"maxReplicas":6,"minReplicas":2,"pool":"a","router":"shop"})");
}

TEST(Pools, ANewOneHasANumberThatIsAllowed) {
  const RenderInput input = test::render_input_of(spec_with_autoscaling());
  const auto replicas = [&](std::int64_t asked) {
    return pool_object_of(input, input.spec.pools[0], asked).at({"spec", "replicas"}).integer();
  };
  EXPECT_EQ(replicas(0), 2);
  EXPECT_EQ(replicas(4), 4);
  EXPECT_EQ(replicas(9), 6);
}

TEST(Pools, APoolWithItsOwnNumberHasNone) {
  EXPECT_TRUE(pool_objects(test::render_input_of(test::small_spec())).empty());
}

}  // namespace
}  // namespace sightline::desired
