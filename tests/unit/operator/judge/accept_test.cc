// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/accept.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/judge/cluster_states.h"

namespace sightline::judge {
namespace {

crd::Spec spec_with_image() {
  crd::Spec spec = healthy_world().spec;
  spec.pools[0].worker_template->image = "vllm/vllm-openai:v0.32.0";
  return spec;
}

// "Reason: message", or empty.
std::string why(const crd::Spec& spec, const ExistingObjects& found = {},
                const crd::NotedImages& images = {
                    .router = "sightline:1", .nats = "nats:1", .download = "hf:1"}) {
  const Trouble trouble = why_not_accepted(spec, found, images);
  return trouble.is_there() ? trouble.reason + ": " + trouble.message : std::string();
}

TEST(Accept, ASpecThatFightsNothing) { EXPECT_EQ(why(spec_with_image()), ""); }

TEST(Accept, RefusesAnEngineWithoutAnImage) {
  crd::Spec spec = spec_with_image();
  spec.pools[0].worker_template->image.clear();
  EXPECT_EQ(why(spec), "ImageMissing: spec.pools[0].template.image: set the engine's image");
  spec.pools[0].backend = crd::Backend::Simulator;
  EXPECT_EQ(why(spec), "");
  EXPECT_EQ(why(spec, {}, {.router = {}, .nats = "nats:1", .download = "hf:1"}),
            "ImageMissing: spec.image: set the image of frontends and routers, because the "
            "operator was started without --router-image");
}

TEST(Accept, RefusesASpecThatNeedsAMissingOperatorImage) {
  crd::Spec spec = spec_with_image();
  const crd::NotedImages without_nats{.router = "r:1", .nats = {}, .download = "hf:1"};
  EXPECT_TRUE(why(spec, {}, without_nats).starts_with("ImageMissing: spec.nats.managed.image: "));
  spec.nats.managed.emplace();
  spec.nats.managed->image = "nats:2";
  EXPECT_EQ(why(spec, {}, without_nats), "");
  const crd::NotedImages without_download{.router = "r:1", .nats = "nats:1", .download = {}};
  EXPECT_EQ(why(spec, {}, without_download), "") << "an engine's image downloads too";
  spec.pools[0].backend = crd::Backend::Simulator;
  EXPECT_TRUE(why(spec, {}, without_download).starts_with("ImageMissing: spec.model.source: "));
  spec.model.source.emplace();
  spec.model.source->image = {.reference = "models:1", .path = {}};
  EXPECT_EQ(why(spec, {}, without_download), "");
}

TEST(Accept, NotMoreThanCanBeKept) {
  crd::Spec spec = spec_with_image();
  spec.pools[0].worker_template->args.assign(40, std::string(4096, 'x'));
  EXPECT_EQ(why(spec), "");
  spec.pools[0].worker_template->args.assign(60, std::string(4096, 'x'));
  EXPECT_TRUE(why(spec).starts_with("SpecTooLarge: spec: has 24")) << why(spec);
}

TEST(Accept, NotOneNameForTwoEndpoints) {
  crd::Spec spec = spec_with_image();
  crd::Pool pool;
  pool.endpoints = {{.name = "e0", .url = "http://a:1", .events = {}, .replay = {}}};
  spec.pools.push_back(pool);
  EXPECT_EQ(why(spec), "");
  spec.pools.push_back(pool);
  EXPECT_EQ(why(spec),
            "EndpointTwice: spec.pools[2].endpoints: another pool also has an endpoint e0. Rename "
            "one of them");
}

TEST(Accept, NotMoreThanASimulatorTakes) {
  crd::Spec spec = spec_with_image();
  spec.kv.block_size = 2048;
  EXPECT_EQ(why(spec), "");
  spec.pools[0].backend = crd::Backend::Simulator;
  EXPECT_EQ(why(spec),
            "SimulatorLimit: spec.kv.blockSize: must be at most 1024, because "
            "spec.pools[0].backend is simulator");
}

TEST(Accept, NotArgumentsThatAreOurs) {
  crd::Spec spec = spec_with_image();
  spec.pools[0].worker_template->args = {"--max-num-seqs=8", "--block-size=32"};
  EXPECT_TRUE(why(spec).starts_with("ArgumentsRefused: spec.pools[0].template.args[1]: "))
      << why(spec);
}

TEST(Accept, NotTransferBetweenEnginesBeforeItIsSupported) {
  crd::Spec spec = spec_with_image();
  spec.pools[0].worker_template->args = {"--kv-transfer-config={}"};
  EXPECT_TRUE(why(spec).starts_with(
      "ArgumentsRefused: spec.pools[0].template.args[0]: --kv-transfer-config is refused, because "
      "prefill and decode on different workers are not supported yet. "))
      << why(spec);
}

TEST(Accept, NotPodTemplatesThatTakeOverWhatIsOurs) {
  crd::Spec spec = spec_with_image();
  spec.router.pod_template.json = R"({"spec":{"containers":[{"name":"router","args":["serve"]}]}})";
  EXPECT_EQ(why(spec),
            "PodTemplateRefused: spec.router.podTemplate.spec.containers[0].args: the operator "
            "sets this field. Leave it out");
  spec.router.pod_template.json = R"({"spec":{"nodeSelector":{"zone":"a"}}})";
  EXPECT_EQ(why(spec), "");
  spec.nats.managed.emplace();
  spec.nats.managed->pod_template.json =
      R"({"spec":{"tolerations":[],"containers":[{"name":"nats","command":["sh"]}]}})";
  EXPECT_EQ(why(spec),
            "PodTemplateRefused: spec.nats.managed.podTemplate.spec.containers[0].command: the "
            "operator sets this field. Leave it out");
  spec.nats.managed.reset();
  spec.agents.pod_template.json = R"({"spec":{"containers":[{"name":"agent","image":"a"}]}})";
  EXPECT_EQ(why(spec),
            "PodTemplateRefused: spec.agents.podTemplate.spec.containers[0].image: the operator "
            "sets this field. Leave it out");
  spec.agents = {};
  spec.pools[0].worker_template->pod_template.json = R"(["no object"])";
  EXPECT_EQ(why(spec), "PodTemplateInvalid: spec.pools[0].template.podTemplate: must be an object");
}

TEST(Accept, NotEnvironmentThatIsNoObject) {
  crd::Spec spec = spec_with_image();
  spec.pools[0].worker_template->env = {{.name = "A", .value = {}, .value_from = {R"("text")"}}};
  EXPECT_EQ(why(spec), "EnvInvalid: spec.pools[0].template.env[0].valueFrom: must be an object");
}

TEST(Accept, NotReferencesToWhatIsNotThere) {
  crd::Spec spec = spec_with_image();
  spec.model.token_secret = {.name = "hub", .key = "token"};
  EXPECT_EQ(why(spec), "SecretMissing: this namespace has no Secret hub with key token. Create it");
  EXPECT_EQ(why(spec, {.secrets = {"hub/token"}, .chat_template = {}}), "");
  spec.model.token_secret.reset();
  spec.model.chat_template = {.config_map = "templates", .key = "chat.jinja"};
  EXPECT_TRUE(why(spec).starts_with("ConfigMapMissing: spec.model.chatTemplate: ")) << why(spec);
  EXPECT_EQ(why(spec, {.secrets = {}, .chat_template = "{{ messages }}"}), "");
  spec.model.chat_template.reset();
  spec.model.source.emplace();
  spec.model.source->pvc = {.claim_name = "models", .path = {}};
  EXPECT_EQ(why(spec),
            "ClaimMissing: spec.model.source.pvc: this namespace has no PersistentVolumeClaim "
            "models. Create it");
  EXPECT_EQ(why(spec, {.secrets = {}, .chat_template = {}, .has_claim = true}), "");
}

TEST(References, AreThoseOfTheModelAndOfNats) {
  crd::Spec spec = spec_with_image();
  spec.nats.external.emplace();
  spec.nats.external->credentials_secret = {.name = "nats", .key = "creds"};
  spec.nats.external->ca_secret = {.name = "nats", .key = "ca.crt"};
  EXPECT_EQ(references_of(spec).secrets.size(), 2U);
}

}  // namespace
}  // namespace sightline::judge
