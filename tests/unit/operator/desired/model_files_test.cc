// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/model_files.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

Value deployment_of(const crd::Spec& spec, std::string_view part) {
  const RenderInput input = test::render_input_of(spec);
  return test::find(test::all_objects(input), "Deployment",
                    revision_name(input.owner, input.revision, part));
}

std::string download(const crd::Spec& spec, std::string_view part) {
  const Value container = test::container_of(deployment_of(spec, part), "download");
  return test::joined(container["command"]) + " " + test::joined(container["args"]);
}

crd::Spec spec_with(const crd::ModelSource& source) {
  crd::Spec spec = test::small_spec();
  spec.model.source = source;
  return spec;
}

TEST(ModelFiles, AClaimIsMountedAsItIs) {
  const Value made = deployment_of(test::small_spec(), "router");
  const Value volume = test::named(test::pod_of(made)["volumes"], "model");
  EXPECT_EQ(volume.at({"persistentVolumeClaim", "claimName"}).text(), "models");
  EXPECT_EQ(volume.at({"persistentVolumeClaim", "readOnly"}).boolean(), true);
  EXPECT_TRUE(test::container_of(made, "download").is_null());
  EXPECT_EQ(model_folder(test::small_spec().model), "/models/qwen");
}

TEST(ModelFiles, ImageSourceGetsItsOwnVolume) {
  const crd::Spec spec =
      spec_with({.uri = {}, .pvc = {}, .image = crd::ImageSource{.reference = "i:1", .path = "p"}});
  const Value volume = test::named(test::pod_of(deployment_of(spec, "a"))["volumes"], "model");
  EXPECT_EQ(volume.at({"image", "reference"}).text(), "i:1");
  EXPECT_EQ(model_folder(spec.model), "/models/p");
}

TEST(ModelFiles, EnginesDownloadAllAndTheOthersTheSmallFiles) {
  const crd::Spec spec = spec_with({.uri = "hf://org/model@v2", .pvc = {}, .image = {}});
  EXPECT_EQ(download(spec, "a"), "hf download org/model --local-dir /models --revision v2");
  EXPECT_EQ(download(spec, "router"),
            "hf download org/model --local-dir /models --revision v2 --include *.j[si]*");
  EXPECT_EQ(download(spec, "frontend"), download(spec, "router"));
}

TEST(ModelFiles, MissingSourceGivesEnginesTheNameAndAgentsSmallFiles) {
  crd::Spec spec = test::small_spec();
  spec.model.name = "org/model";
  spec.model.source.reset();
  spec.model.token_secret = crd::SecretRef{.name = "hub", .key = "token"};
  EXPECT_EQ(download(spec, "a"), "hf download org/model --local-dir /models --include *.j[si]*");
  const Value made = deployment_of(spec, "a");
  EXPECT_EQ(test::texts(test::container_of(made, "worker")["args"]).front(), "org/model");
  for (const char* name : {"worker", "download"}) {
    const Value token = test::named(test::container_of(made, name)["env"], "HF_TOKEN");
    EXPECT_EQ(token.at({"valueFrom", "secretKeyRef", "name"}).text(), "hub") << name;
  }
  EXPECT_TRUE(test::named(test::container_of(made, "agent")["env"], "HF_TOKEN").is_null());
}

TEST(ModelFiles, ASimulatorNeedsNoWeights) {
  crd::Spec spec = spec_with({.uri = "hf://org/model", .pvc = {}, .image = {}});
  spec.pools[0].backend = crd::Backend::Simulator;
  EXPECT_EQ(download(spec, "a"), "hf download org/model --local-dir /models --include *.j[si]*");
  spec.model.source.reset();
  EXPECT_NE(test::joined(test::container_of(deployment_of(spec, "a"), "worker")["args"])
                .find("--model-path /models "),
            std::string::npos);
}

TEST(ModelFiles, DownloadEndsBeforeTheAgentAndAloneMayWrite) {
  const crd::Spec spec = spec_with({.uri = "hf://org/model", .pvc = {}, .image = {}});
  const Value made = deployment_of(spec, "a");
  const Value pod = test::pod_of(made);
  const auto& inits = pod["initContainers"].items();
  ASSERT_EQ(inits.size(), 2U);
  EXPECT_EQ(inits[0]["name"].text(), "download");
  EXPECT_TRUE(inits[0]["restartPolicy"].is_null());
  for (const char* name : {"download", "agent", "worker"}) {
    const Value mount = test::named(test::container_of(made, name)["volumeMounts"], "model");
    EXPECT_EQ(mount["readOnly"].boolean().value_or(false), std::string_view(name) != "download");
  }
}

}  // namespace
}  // namespace sightline::desired
