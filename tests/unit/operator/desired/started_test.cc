// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/contract/agent_settings.h"
#include "common/contract/load_settings.h"
#include "common/contract/serve_settings.h"

#include "tests/unit/operator/desired/render_inputs.h"

// Starts the rendered containers, and reads their settings as the programs do.
namespace sightline::desired {
namespace {

using object::Value;
using Environment = std::map<std::string, std::string>;
using test::container_of;
using test::find;

const std::vector<WorkerFields> kWorkers = {
    {{"name", "w0"}, {"url", "http://10.0.0.7:8000"}, {"agent", "true"}, {"block_size", "16"}},
    {{"name", "w1"}, {"url", "http://[fd00::1]:8000"}, {"agent", "true"}, {"drain", "true"}}};

// A container as the kubelet starts it.
class Started {
 public:
  Started(const std::vector<Value>& objects, const Value& container, Value pod)
      : objects_(objects), pod_(std::move(pod)) {
    for (const Value& from : container["envFrom"].items()) {
      const Value map = find(objects, "ConfigMap", from.at({"configMapRef", "name"}).text());
      for (const auto& [name, value] : map["data"].members()) environment_[name] = value.text();
    }
    for (const Value& variable : container["env"].items()) {
      environment_[std::string(variable["name"].text())] = value_of(variable);
    }
    arguments_ = test::texts(container["args"]);
    for (std::string& argument : arguments_) expand(argument);
    mounts_ = container["volumeMounts"];
  }

  // Loads all settings. ADD_FAILURE() reports the error of the program.
  void load(contract::SettingTable& table) {
    const contract::SettingSources sources{
        {arguments_.begin() + 1, arguments_.end()},
        environment_,
        [this](const std::string& path) -> Result<std::string> { return file(path); }};
    const auto loaded = contract::load_settings(table, sources);
    if (!loaded.ok()) ADD_FAILURE() << loaded.error().message;
    for (const auto& [name, value] : environment_) {
      if (name.starts_with("SIGHTLINE_")) expect_known(table, name);
    }
  }

  // Checks that the file is in a mounted volume.
  void expect_file(const std::string& path) const {
    EXPECT_TRUE(is_there(path)) << path << " is in no volume";
  }
  [[nodiscard]] bool is_there(const std::string& path) const {
    const std::size_t slash = path.rfind('/');
    for (const Value& mount : mounts_.items()) {
      if (mount["mountPath"].text() != path.substr(0, slash)) continue;
      const Value volume = test::named(pod_["volumes"], mount["name"].text());
      for (const Value& source : volume.at({"projected", "sources"}).items()) {
        for (const Value& item : source.at({"secret", "items"}).items()) {
          if (item["path"].text() == path.substr(slash + 1)) return true;
        }
      }
      const Value map = find(objects_, "ConfigMap", volume.at({"configMap", "name"}).text());
      if (map["data"].contains(path.substr(slash + 1))) return true;
    }
    return false;
  }
  [[nodiscard]] const std::string& command() const { return arguments_.front(); }

 private:
  std::string value_of(const Value& variable) {
    const Value& from = variable["valueFrom"];
    if (from.is_null()) return std::string(variable["value"].text());
    if (from.at({"fieldRef", "fieldPath"}).text() == "metadata.name") return "pod-name";
    const Value map = find(objects_, "ConfigMap", from.at({"configMapKeyRef", "name"}).text());
    return std::string(map.at({"data", from.at({"configMapKeyRef", "key"}).text()}).text());
  }

  void expand(std::string& argument) const {
    for (const auto& [name, value] : environment_) {
      const std::string reference = "$(" + name + ")";
      const std::size_t at = argument.find(reference);
      if (at != std::string::npos) argument.replace(at, reference.size(), value);
    }
  }

  Result<std::string> file(const std::string& path) {
    expect_file(path);
    for (const Value& object : objects_) {
      const Value& content = object.at({"data", path.substr(path.rfind('/') + 1)});
      if (content.is_string()) return std::string(content.text());
    }
    return client_error(ErrorCode::InvalidArgument, "no file " + path);
  }

  static void expect_known(const contract::SettingTable& table, const std::string& name) {
    bool is_known = false;
    for (const contract::Setting& row : table.rows()) {
      is_known = is_known || contract::environment_name(row) == name;
    }
    EXPECT_TRUE(is_known) << name << " is no setting";
  }

  const std::vector<Value>& objects_;
  Value pod_;
  Value mounts_;
  Environment environment_;
  std::vector<std::string> arguments_;
};

Started started(const std::vector<Value>& objects, std::string_view deployment,
                std::string_view container) {
  const Value workload = find(objects, "Deployment", deployment);
  return {objects, container_of(workload, container), test::pod_of(workload)};
}

struct Rendered {
  explicit Rendered(crd::Spec spec)
      : input(test::render_input_of(std::move(spec))),
        objects(test::all_objects(input, kWorkers)) {}
  [[nodiscard]] std::string name(std::string_view part) const {
    return revision_name(input.owner, input.revision, part);
  }
  RenderInput input;
  std::vector<Value> objects;
};

TEST(Started, ARouterTakesAllThatItIsGiven) {
  const Rendered rendered(test::small_spec());
  Started router = started(rendered.objects, rendered.name("router"), "router");
  contract::ServeSettings settings;
  contract::SettingTable table = contract::serve_table(settings);
  router.load(table);
  const auto checked = contract::check_serve_settings(settings, true);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().message);
  EXPECT_EQ(router.command(), "serve");
  EXPECT_EQ(settings.roles, contract::Roles::Router);
  EXPECT_EQ(settings.replica.scope, "prod/shop");
  EXPECT_EQ(settings.replica.revision, rendered.input.revision);
  EXPECT_EQ(settings.replica.name, "pod-name");
  EXPECT_EQ(settings.model.path, "/models/qwen");
  EXPECT_EQ(settings.model.served_names, std::vector<std::string>{"qwen"});
  EXPECT_EQ(settings.nats.urls, "nats://shop-nats:4222");
  ASSERT_EQ(settings.workers.size(), 2U);
  EXPECT_TRUE(settings.workers[0].agent);
  EXPECT_TRUE(settings.workers[1].drain);
  for (const std::string& file : {settings.identity.key_file, settings.nats.nkey_file,
                                  settings.admin.token_file, settings.selection.token_file}) {
    router.expect_file(file);
  }
}

TEST(Started, AFrontendTakesAllThatItIsGiven) {
  const Rendered rendered(test::small_spec());
  Started frontend = started(rendered.objects, rendered.name("frontend"), "frontend");
  contract::ServeSettings settings;
  contract::SettingTable table = contract::serve_table(settings);
  frontend.load(table);
  const auto checked = contract::check_serve_settings(settings, true);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().message);
  EXPECT_EQ(settings.roles, contract::Roles::Frontend);
  EXPECT_EQ(settings.selection.routers, "http://" + rendered.name("router") + ":8092");
  EXPECT_EQ(settings.server.host, "::");
  EXPECT_EQ(settings.server.drain_timeout, std::chrono::minutes(2));
  EXPECT_TRUE(settings.workers.empty());
  for (const std::string& file : {settings.identity.key_file, settings.nats.nkey_file,
                                  settings.admin.token_file, settings.selection.token_file}) {
    frontend.expect_file(file);
  }
}

TEST(Started, AgentBesideAnEngineAcceptsItsSettings) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].backend = crd::Backend::Sglang;
  const Rendered rendered(spec);
  Started agent = started(rendered.objects, rendered.name("a"), "agent");
  contract::AgentSettings settings;
  contract::SettingTable table = contract::agent_table(settings);
  agent.load(table);
  EXPECT_TRUE(contract::check_agent_settings(settings, false).ok());
  EXPECT_EQ(agent.command(), "agent");
  EXPECT_EQ(settings.log.level, "info");
  ASSERT_EQ(settings.workers.size(), 1U);
  EXPECT_EQ(settings.workers[0].name, "pod-name");
  EXPECT_EQ(settings.workers[0].url, "http://127.0.0.1:8000");
  EXPECT_EQ(settings.workers[0].family, contract::EngineFamily::Sglang);
  agent.expect_file(settings.identity.key_file);
  agent.expect_file(settings.nats.nkey_file);
}

TEST(Started, AgentOfForeignWorkersAcceptsItsSettings) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].worker_template.reset();
  spec.pools[0].endpoints = {
      {.name = "e0", .url = "http://a:1", .events = "tcp://a:2", .replay = {}}};
  const Rendered rendered(spec);
  Started agent = started(rendered.objects, rendered.name("agents"), "agent");
  contract::AgentSettings settings;
  contract::SettingTable table = contract::agent_table(settings);
  agent.load(table);
  EXPECT_TRUE(contract::check_agent_settings(settings, true).ok());
  ASSERT_EQ(settings.workers.size(), 1U);
  EXPECT_EQ(settings.workers[0].events, "tcp://a:2");
}

TEST(Started, AFileWithoutWorkersIsRead) {
  contract::AgentSettings settings;
  contract::SettingTable table = contract::agent_table(settings);
  const contract::SettingSources sources{
      {"--config", "f"}, {}, [](const std::string&) -> Result<std::string> {
        return workers_file({});
      }};
  EXPECT_TRUE(contract::load_settings(table, sources).ok());
}

TEST(Started, EverySettingOfTheSpecReachesTheProgram) {
  crd::Spec spec = test::spec_of(R"({"model":{"name":"m","maxModelLen":4096},
    "multimodal":{"imagesMax":3,"imageBytesMax":"2M","forward":"URL",
      "fetch":{"allowPrivateAddresses":true,"connectTimeout":"1s","timeout":"7s","redirectsMax":1,
               "downloadsMax":9}},
    "frontend":{"concurrentRequestsMax":77},
    "router":{"policy":"least-loaded","staleAfter":"9s","requestTimeout":"3m",
      "weights":{"overlapCredit":"0.5","hostCredit":"0.25","diskCredit":"0","prefillLoadScale":"2",
                 "decodeLoadScale":"1.5"}},
    "rollout":{"drainTimeout":"2h"},"logLevel":"debug",
    "nats":{"external":{"urls":["tls://a:1","tls://b:2"],"credentialsSecret":{"name":"n","key":"k"},
      "caSecret":{"name":"c","key":"ca"}}},
    "pools":[{"name":"a","template":{"image":"i"}}]})");
  const Rendered rendered(spec);
  contract::ServeSettings frontend;
  contract::SettingTable frontend_table = contract::serve_table(frontend);
  Started pod = started(rendered.objects, rendered.name("frontend"), "frontend");
  pod.load(frontend_table);
  EXPECT_EQ(frontend.model.max_model_len, 4096U);
  EXPECT_EQ(frontend.media.images_max, 3U);
  EXPECT_EQ(frontend.media.image_bytes_max, 2'000'000U);
  EXPECT_EQ(frontend.media.forward, contract::MediaForward::Url);
  EXPECT_TRUE(frontend.media.allow_private_addresses);
  EXPECT_EQ(frontend.media.connect_timeout, std::chrono::seconds(1));
  EXPECT_EQ(frontend.media.fetch_timeout, std::chrono::seconds(7));
  EXPECT_EQ(frontend.media.redirects_max, 1U);
  EXPECT_EQ(frontend.media.downloads_max, 9U);
  EXPECT_EQ(frontend.server.concurrent_requests_max, 77U);
  EXPECT_EQ(frontend.server.drain_timeout, std::chrono::hours(1)) << "as long as may be";
  EXPECT_EQ(frontend.fleet.request_timeout, std::chrono::minutes(3));
  EXPECT_EQ(frontend.log.level, "debug");
  EXPECT_EQ(frontend.nats.urls, "tls://a:1,tls://b:2");
  pod.expect_file(frontend.nats.credentials_file);
  pod.expect_file(frontend.nats.ca_file);
  contract::ServeSettings router;
  contract::SettingTable router_table = contract::serve_table(router);
  started(rendered.objects, rendered.name("router"), "router").load(router_table);
  EXPECT_EQ(router.routing.policy, contract::Policy::LeastLoaded);
  EXPECT_EQ(router.replica.stale_after, std::chrono::seconds(9));
  EXPECT_DOUBLE_EQ(router.routing.overlap_credit, 0.5);
  EXPECT_DOUBLE_EQ(router.routing.host_credit, 0.25);
  EXPECT_DOUBLE_EQ(router.routing.disk_credit, 0);
  EXPECT_DOUBLE_EQ(router.routing.prefill_load_scale, 2);
  EXPECT_DOUBLE_EQ(router.routing.decode_load_scale, 1.5);
}

}  // namespace
}  // namespace sightline::desired
