// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/object/metadata.h"

#include <gtest/gtest.h>

namespace sightline::object {
namespace {

const Resource kDeployments{"apps", "v1", "deployments", "Deployment"};
const Resource kNodes{"", "v1", "nodes", "Node", false};

TEST(Resource, PathsAreThoseOfTheApiServer) {
  EXPECT_EQ(collection_path_of(kDeployments, "a"), "/apis/apps/v1/namespaces/a/deployments");
  EXPECT_EQ(collection_path_of(kDeployments, ""), "/apis/apps/v1/deployments");
  EXPECT_EQ(path_of(kDeployments, {"a", "b"}, "status"),
            "/apis/apps/v1/namespaces/a/deployments/b/status");
  EXPECT_EQ(path_of(kNodes, {"", "n"}), "/api/v1/nodes/n");
  EXPECT_EQ(api_version_of(kDeployments), "apps/v1");
  EXPECT_EQ(api_version_of(kNodes), "v1");
}

TEST(Resource, NamesCannotLeaveTheirSegment) {
  EXPECT_EQ(path_of(kDeployments, {"../x", "a/b?c#d%"}),
            "/apis/apps/v1/namespaces/..%2Fx/deployments/a%2Fb%3Fc%23d%25");
}

TEST(Metadata, ReadsWhatAnObjectSaysAboutItself) {
  const auto object = *Value::parse(
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"n","namespace":"s","uid":"u",
          "resourceVersion":"7","labels":{"a.b/c":"l"},"annotations":{"x":"y"},
          "ownerReferences":[{"uid":"1"},{"uid":"2","controller":true}]}})");
  EXPECT_EQ(key_of(object), (Key{"s", "n"}));
  EXPECT_EQ(text_of(key_of(object)), "s/n");
  EXPECT_EQ(uid_of(object), "u");
  EXPECT_EQ(resource_version_of(object), "7");
  EXPECT_EQ(label_of(object, "a.b/c"), "l");
  EXPECT_EQ(annotation_of(object, "x"), "y");
  EXPECT_EQ(annotation_of(object, "z"), "");
  EXPECT_EQ(controller_uid_of(object), "2");
  EXPECT_FALSE(is_being_deleted(object));
  EXPECT_EQ(controller_reference(object).to_text(),
            R"({"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,)"
            R"("kind":"Deployment","name":"n","uid":"u"})");
}

TEST(Metadata, ACachedObjectIsWithoutManagedFields) {
  auto object = *Value::parse(
      R"({"metadata":{"name":"n","managedFields":[{}],
          "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","a":"b"}}})");
  strip_for_cache(object);
  name_kind(object, kNodes);
  EXPECT_EQ(object.to_text(),
            R"({"apiVersion":"v1","kind":"Node","metadata":{"annotations":{"a":"b"},"name":"n"}})");
}

}  // namespace
}  // namespace sightline::object
