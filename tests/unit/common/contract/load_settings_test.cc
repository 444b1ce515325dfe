// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/load_settings.h"

#include <gtest/gtest.h>

#include "common/contract/serve_settings.h"

namespace sightline::contract {
namespace {

struct Given {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string yaml;  // content of router.yaml, named by --config when not empty
};

// Settings after loading, or the error's text.
struct Outcome {
  ServeSettings settings;
  LoadedSettings loaded;
  std::string printed;
  std::string error;
};

Outcome load(Given given) {
  Outcome outcome;
  SettingTable table = serve_table(outcome.settings);
  if (!given.yaml.empty()) given.arguments.insert(given.arguments.begin(), "--config=router.yaml");
  const auto read_file = [&given](const std::string& path) -> Result<std::string> {
    if (path == "router.yaml") return given.yaml;
    return client_error(ErrorCode::NotFound, path + ": no such file");
  };
  const auto loaded = load_settings(table, {given.arguments, given.environment, read_file});
  if (loaded.ok()) {
    outcome.loaded = *loaded;
  } else {
    outcome.error = loaded.error().message;
  }
  outcome.printed = print_settings(table);
  return outcome;
}

TEST(LoadSettings, NothingGivenLeavesTheDefaults) {
  const Outcome outcome = load({});
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.settings.server.port, 8000);
  EXPECT_EQ(outcome.settings.admin.host, "127.0.0.1");
  EXPECT_EQ(outcome.settings.server.body_bytes_max, 64u << 20);
  EXPECT_EQ(outcome.settings.routing.policy, Policy::Kv);
  EXPECT_TRUE(outcome.settings.workers.empty());
  EXPECT_EQ(outcome.loaded.config_file, "");
}

TEST(LoadSettings, FlagsBeatEnvironmentBeatsFileBeatsDefault) {
  const std::string yaml = "server:\n  port: 1\nadmin:\n  port: 1\nlog:\n  level: debug\n";
  const Outcome outcome =
      load({{"--port", "3"}, {{"SIGHTLINE_PORT", "2"}, {"SIGHTLINE_ADMIN_PORT", "2"}}, yaml});
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.settings.server.port, 3);
  EXPECT_EQ(outcome.settings.admin.port, 2);
  EXPECT_EQ(outcome.settings.log.level, "debug");
  EXPECT_EQ(outcome.settings.server.host, "127.0.0.1");
}

TEST(LoadSettings, PrintedSettingsSayWhereEachValueComesFrom) {
  const std::string yaml = "server:\n  idle_timeout: 20s\n";
  const Outcome outcome = load({{"--port=3"}, {{"SIGHTLINE_ADMIN_PORT", "2"}}, yaml});
  EXPECT_NE(outcome.printed.find("\n  port: 3  # flag --port\n"), std::string::npos);
  EXPECT_NE(outcome.printed.find("\n  port: 2  # env SIGHTLINE_ADMIN_PORT\n"), std::string::npos);
  EXPECT_NE(outcome.printed.find("\n  idle_timeout: \"20s\"  # router.yaml:2\n"),
            std::string::npos);
  EXPECT_NE(outcome.printed.find("\n  host: \"127.0.0.1\"  # default\n"), std::string::npos);
}

TEST(LoadSettings, PrintedSettingsLoadToTheSameSettings) {
  const Outcome first = load(
      {{"--model-path", "/models/a \"quoted\" # name", "--served-model-name", "a",
        "--served-model-name=b: c", "--worker", "name=w0,url=http://h:1,events=tcp://*:5557",
        "--worker", "url=http://[::1]:2,block_size=32,drain=true", "--routing-policy",
        "least-loaded", "--media-allow-private-addresses", "--routing-tie-tolerance-ratio", "0.1"},
       {},
       ""});
  ASSERT_EQ(first.error, "");
  const Outcome second = load({{}, {}, first.printed});
  ASSERT_EQ(second.error, "");
  EXPECT_EQ(second.settings.model.path, "/models/a \"quoted\" # name");
  EXPECT_EQ(second.settings.model.served_names, (std::vector<std::string>{"a", "b: c"}));
  EXPECT_EQ(second.settings.workers, first.settings.workers);
  EXPECT_EQ(second.settings.routing.policy, Policy::LeastLoaded);
  EXPECT_TRUE(second.settings.media.allow_private_addresses);
  EXPECT_EQ(second.settings.routing.tie_tolerance_ratio, 0.1);
}

TEST(LoadSettings, WorkersAddUpAndTheStrongerSourceWins) {
  const std::string yaml =
      "workers:\n  - {name: a, url: 'http://file:1'}\n  - name: b\n    url: http://file:2\n";
  const Outcome outcome = load({{"--worker", "name=b,url=http://flag:2"},
                                {{"SIGHTLINE_WORKER", "name=c,url=http://e:3;url=http://e:4;"}},
                                yaml});
  ASSERT_EQ(outcome.error, "");
  std::vector<std::string> texts;
  for (const WorkerSpec& worker : outcome.settings.workers) texts.push_back(worker_text(worker));
  EXPECT_EQ(texts, (std::vector<std::string>{"name=a,url=http://file:1", "name=b,url=http://flag:2",
                                             "name=c,url=http://e:3",
                                             "name=worker-3b4a0fee,url=http://e:4"}));
}

TEST(LoadSettings, InvalidFileWorkerIsLeftOutWithAnError) {
  const Outcome outcome =
      load({{},
            {},
            "workers:\n  - url: http://a:1\n  - name: b\n    uri: http://b:1\n"
            "  - {name: c, url: 'http://c:1'}\n  - {name: c, url: 'http://d:1'}\n"});
  ASSERT_EQ(outcome.error, "");
  ASSERT_EQ(outcome.settings.workers.size(), 2U);
  EXPECT_EQ(worker_text(outcome.settings.workers[1]), "name=c,url=http://c:1");
  EXPECT_EQ(
      outcome.loaded.left_out,
      (std::vector<std::string>{
          "workers (router.yaml:3): unknown worker field 'uri' (did you mean 'url'?). A worker "
          "has name, url, family, events, replay, dp, block_size, copies, drain, agent, "
          "api_key_file",
          "workers (router.yaml:6): the worker name 'c' is given twice"}));
}

TEST(LoadSettings, AStrongerSourceReplacesAList) {
  const Outcome outcome =
      load({{"--served-model-name", "x"}, {}, "model:\n  served_names:\n    - a\n    - b\n"});
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.settings.model.served_names, std::vector<std::string>{"x"});
}

TEST(LoadSettings, IgnoresThePortVariableOfAKubernetesService) {
  const Outcome outcome = load({{},
                                {{"SIGHTLINE_PORT", "tcp://10.0.0.1:8000"},
                                 {"SIGHTLINE_SERVICE_HOST", "10.0.0.1"},
                                 {"SIGHTLINE_HOST", ""}},
                                ""});
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.settings.server.port, 8000);
  EXPECT_EQ(outcome.settings.server.host, "127.0.0.1");
}

TEST(LoadSettings, HelpIsGivenEvenBesideWrongSettings) {
  EXPECT_TRUE(load({{"--help"}, {{"SIGHTLINE_PORT", "x"}}, ""}).loaded.help);
}

TEST(LoadSettings, TheConfigurationFileMayBeNamedByTheEnvironment) {
  const Outcome outcome = load({{}, {{"SIGHTLINE_CONFIG", "other.yaml"}}, ""});
  EXPECT_EQ(outcome.error, "other.yaml: no such file");
}

struct ErrorCase {
  std::string name;
  Given given;
  std::string want_error;
};

const std::vector<ErrorCase> kValueErrors = {
    {"flag out of range",
     {{"--port", "70000"}, {}, ""},
     "server.port (flag --port): '70000' is not a whole number in 0..65535"},
    {"environment not a number",
     {{}, {{"SIGHTLINE_IO_THREADS", "two"}}, ""},
     "server.io_threads (env SIGHTLINE_IO_THREADS): 'two' is not a whole number in 0..1024"},
    {"octal in the file",
     {{}, {}, "server:\n\n  port: 010\n"},
     "server.port (router.yaml:3): '010' is not a whole number in 0..65535"},
    {"quoted number",
     {{}, {}, "server:\n  port: '80'\n"},
     "router.yaml:2: server.port is not a text: write it without quotes"},
    {"yes is not a boolean",
     {{}, {}, "media:\n  allow_private_addresses: yes\n"},
     "media.allow_private_addresses (router.yaml:2): 'yes' is neither true nor false"},
    {"time without a unit",
     {{"--idle-timeout", "5"}, {}, ""},
     "server.idle_timeout (flag --idle-timeout): '5' is not a time in 100ms..1h. Write it with "
     "its unit: 250ms, 5s, 2m, 1h"},
    {"size that overflows",
     {{"--body-bytes-max", "99999999999999GiB"}, {}, ""},
     "server.body_bytes_max (flag --body-bytes-max): '99999999999999GiB' is not a size in "
     "1KiB..4GiB. Write bytes, or KiB, MiB, GiB: 4096, 20MiB"},
    {"not a finite number",
     {{"--routing-disk-credit", "nan"}, {}, ""},
     "routing.disk_credit (flag --routing-disk-credit): 'nan' is not a number in 0..10"},
    {"no such choice",
     {{"--routing-policy", "round_robin"}, {}, ""},
     "routing.policy (flag --routing-policy): 'round_robin' (did you mean 'round-robin'?) is "
     "not one of kv, round-robin, random, least-loaded"},
    {"unknown flag",
     {{"--worker-url", "http://x"}, {}, ""},
     "unknown flag --worker-url (did you mean '--worker'?). --help lists all flags"},
    {"near flag",
     {{"--admin-prot", "1"}, {}, ""},
     "unknown flag --admin-prot (did you mean '--admin-port'?). --help lists all flags"},
    {"flag without value", {{"--port", "--host", "h"}, {}, ""}, "--port needs a value: --port N"},
    {"stray word",
     {{"serve"}, {}, ""},
     "unexpected argument 'serve': settings are given as --flag value"},
};

const std::vector<ErrorCase> kFileErrors = {
    {"unknown key",
     {{}, {}, "server:\n  host: h\n  prot: 1\n"},
     "router.yaml:3: unknown setting 'server.prot' (did you mean 'port'?)"},
    {"unknown section",
     {{}, {}, "sever:\n  port: 1\n"},
     "router.yaml:1: unknown setting 'sever' (did you mean 'server'?)"},
    {"empty section name", {{}, {}, "'':\n  workers: []\n"}, "router.yaml:1: unknown setting ''"},
    {"section with a value",
     {{}, {}, "server: 8000\n"},
     "router.yaml:1: 'server' is a section: write its settings below it"},
    {"value missing", {{}, {}, "server:\n  port:\n"}, "router.yaml:2: server.port needs one value"},
    {"list for a value",
     {{}, {}, "server:\n  port: [1]\n"},
     "router.yaml:2: server.port needs one value"},
    {"value for a list",
     {{}, {}, "workers: http://x\n"},
     "router.yaml:1: workers is a list: start each entry with '- '"},
    {"same name twice in a source",
     {{"--worker", "url=http://a:1", "--worker", "url=http://a:1/"}, {}, ""},
     "workers (flag --worker): the worker name 'worker-dbbd3e69' is given twice"},
};

TEST(LoadSettings, ErrorsNameSettingSourceAndAllowedValues) {
  for (const ErrorCase& c : kValueErrors) EXPECT_EQ(load(c.given).error, c.want_error) << c.name;
}

TEST(LoadSettings, ErrorsInTheFileNameTheLine) {
  for (const ErrorCase& c : kFileErrors) EXPECT_EQ(load(c.given).error, c.want_error) << c.name;
}

TEST(LoadSettings, HelpNamesEverySettingWithItsFlagVariableAndPath) {
  ServeSettings settings;
  const SettingTable table = serve_table(settings);
  const std::string help = help_text(table);
  for (const Setting& row : table.rows()) {
    EXPECT_NE(help.find("--" + row.text.flag), std::string::npos);
    EXPECT_NE(help.find(environment_name(row)), std::string::npos);
    EXPECT_NE(help.find(row.text.path + "]"), std::string::npos) << row.text.path;
  }
  for (std::size_t begin = 0; begin < help.size();) {
    const std::size_t end = help.find('\n', begin);
    EXPECT_LE(end - begin, 160u) << help.substr(begin, end - begin);
    begin = end + 1;
  }
}

}  // namespace
}  // namespace sightline::contract
