// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/worker_spec.h"

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

TEST(WorkerSpec, AllFieldsAreRead) {
  const auto worker = parse_worker(
      "name=w0,url=http://127.0.0.1:8101/,events=tcp://127.0.0.1:5557,replay=tcp://127.0.0.1:5657,"
      "dp=2,block_size=16,copies=last-copy,drain=true,api_key_file=/run/key");
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(worker->name, "w0");
  EXPECT_EQ(worker->url, "http://127.0.0.1:8101");
  EXPECT_EQ(worker->host, "127.0.0.1");
  EXPECT_EQ(worker->port, 8101);
  EXPECT_EQ(worker->events, "tcp://127.0.0.1:5557");
  EXPECT_EQ(worker->replay, "tcp://127.0.0.1:5657");
  EXPECT_EQ(worker->ranks, 2u);
  EXPECT_EQ(worker->block_size, 16u);
  EXPECT_EQ(worker->copies, Copies::LastCopy);
  EXPECT_TRUE(worker->drain);
  EXPECT_EQ(worker->api_key_file, "/run/key");
}

TEST(WorkerSpec, AnUrlIsEnough) {
  const auto worker = parse_worker("url=http://engine-0.engines");
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(worker->name, "worker-19ca3153");
  EXPECT_EQ(worker->port, 80);
  EXPECT_EQ(worker->events, "");
  EXPECT_EQ(worker->block_size, 0u);
}

TEST(WorkerSpec, AnIpv6HostLosesItsBrackets) {
  const auto worker = parse_worker("url=http://[fd00::7]:8000");
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(worker->host, "fd00::7");
  EXPECT_EQ(worker->port, 8000);
  EXPECT_EQ(worker->url, "http://[fd00::7]:8000");
  EXPECT_EQ(worker->name, "worker-faf5612e");
}

TEST(WorkerSpec, ItsTextParsesToTheSameSpec) {
  for (const char* text : {"url=http://a:1", "name=x,url=http://a:1,events=@tcp://*:5557",
                           "name=x,url=http://a:1,replay=ipc:///run/r,block_size=65536",
                           "name=x,url=http://a:1,events=tcp://*:5557,dp=64",
                           "name=x,url=http://a:1,api_key_file=/run/a key"}) {
    const auto worker = parse_worker(text);
    ASSERT_TRUE(worker.ok()) << text;
    const auto again = parse_worker(worker_text(*worker));
    ASSERT_TRUE(again.ok()) << worker_text(*worker);
    EXPECT_EQ(*again, *worker);
  }
}

TEST(WorkerSpec, AnAgentMayBeSaidToReadItsEvents) {
  EXPECT_FALSE(parse_worker("url=http://a:1")->agent);
  const auto worker = parse_worker("name=w,url=http://a:1,agent=true");
  ASSERT_TRUE(worker.ok());
  EXPECT_TRUE(worker->agent);
  EXPECT_EQ(worker_text(*worker), "name=w,url=http://a:1,agent=true");
}

TEST(WorkerSpec, WhatIsWrongIsNamed) {
  struct Case {
    std::string text;
    std::string want_part;
  };
  const std::vector<Case> cases = {
      {"", "a worker needs url="},
      {"name=a", "a worker needs url="},
      {"http://a:1", "is not FIELD=VALUE"},
      {"url=http://a:1,", ""},
      {"url=https://a:1", "is not of the form http://HOST:PORT"},
      {"url=http://a:1/v1", "is not of the form http://HOST:PORT"},
      {"url=http://a:", "is not of the form"},
      {"url=http://a:0", "is not of the form"},
      {"url=http://a:65536", "is not of the form"},
      {"url=http://a:1x", "is not of the form"},
      {"url=http://:1", "is not of the form"},
      {"url=http://a:b:1", "is not of the form"},
      {"url=http://[::1", "is not of the form"},
      {"url=http://[::1]x:1", "is not of the form"},
      {"url=http://user@a:1", "is not of the form"},
      {"url=http://a:1?x", "is not of the form"},
      {"url=http://a b:1", "is not of the form"},
      {"url=http://a:1,url=http://b:1", "'url' is given twice"},
      {"url=http://a:1,name=a b", "1 to 63 characters"},
      {"url=http://a:1,name=", "1 to 63 characters"},
      {"url=http://a:1,events=5557", "events=5557 is not of the form tcp://HOST:PORT"},
      {"url=http://a:1,events=tcp://a", "is not of the form tcp://HOST:PORT"},
      {"url=http://a:1,replay=@tcp://a:1", "is not of the form tcp://HOST:PORT"},
      {"url=http://a:1,block_size=0", "is not a whole number in 1..65536"},
      {"url=http://a:1,block_size=-16", "is not a whole number in 1..65536"},
      {"url=http://a:1,dp=0", "dp=0 is not a whole number in 1..64"},
      {"url=http://a:1,dp=65", "dp=65 is not a whole number in 1..64"},
      {"url=http://a:1,dp=2,events=ipc:///run/kv", "several ranks need tcp://HOST:PORT"},
      {"url=http://a:1,dp=1,events=ipc:///run/kv", ""},
      {"url=http://a:1,dp=2,replay=tcp://a:65535",
       "leaves no valid port for the rank 1 ports above"},
      {"url=http://a:1,dp=64,events=tcp://a:99999999999", "not of the form"},
      {"url=http://a:1,dp=2,events=tcp://a:4294967295", "leaves no valid port"},
      {"url=http://a:1,events=tcp://a:5557,replay=tcp://a:5559,dp=3", "overlap for dp=3"},
      {"url=http://a:1,replay=tcp://a:5557,events=tcp://a:5559,dp=3", "overlap for dp=3"},
      {"url=http://a:1,events=tcp://a:5557,replay=tcp://a:5559,dp=2", ""},
      {"url=http://a:1,drain=yes", "drain=yes must be true or false"},
      {"url=http://a:1,agent=1", "agent=1 must be true or false"},
      {"url=http://a:1,agent=true,events=tcp://a:5557", "give events= and replay= to the agent"},
      {"url=http://a:1,replay=tcp://a:5557,agent=true", "give events= and replay= to the agent"},
      {"url=http://a:1,copies=2", "copies=2 must be refcount or last-copy"},
      {"url=http://a:1,api_key_file=", "must be the path of a file"},
      {"url=http://a:1,api_key_file=a\nb", "must be the path of a file"},
      {"url=http://a:1,api_key_file=" + std::string(4096, 'a'), "at most 4095 bytes"},
      {"url=http://a:1,blocksize=16", "did you mean 'block_size'?"},
      {"url=http://" + std::string(64, 'a') + ":1", ""},
      {"url=http://" + std::string(5000, 'a') + ":1", "is not of the form"},
  };
  for (const Case& c : cases) {
    const auto worker = parse_worker(c.text);
    if (c.want_part.empty()) {
      EXPECT_TRUE(worker.ok()) << c.text;
      continue;
    }
    ASSERT_FALSE(worker.ok()) << c.text;
    EXPECT_NE(worker.error().message.find(c.want_part), std::string::npos)
        << c.text << ": " << worker.error().message;
    EXPECT_LT(worker.error().message.size(), 1200u);
  }
}

}  // namespace
}  // namespace sightline::contract
