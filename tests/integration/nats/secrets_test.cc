// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// How a server and a process authenticate: certificates, nkeys, JWTs.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/integration/nats/peer.h"
#include "tests/support/paths.h"

namespace sightline::nats {
namespace {

using test::eventually;
using test::NatsServer;

// Files that nats_secrets.py makes once for all tests of the program.
class Secrets {
 public:
  static const Secrets& get() {
    static const Secrets secrets;
    return secrets;
  }
  ~Secrets() {
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }
  Secrets(const Secrets&) = delete;
  Secrets& operator=(const Secrets&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(file(name)).rdbuf();
    return text.str();
  }

 private:
  Secrets() {
    std::string name = (std::filesystem::temp_directory_path() / "secrets-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    directory_ = name;
    const std::string make =
        "python3 " + test::in_sources("tests/support/nats_secrets.py") + " " + name;
    if (std::system(make.c_str()) != 0) throw std::runtime_error("nats_secrets.py has failed");
  }
  std::string directory_;
};

std::string tls_config(const std::string& certificate, bool verifies) {
  const Secrets& secrets = Secrets::get();
  return "tls { cert_file: \"" + secrets.file(certificate + ".pem") + "\", key_file: \"" +
         secrets.file(certificate + ".key") + "\", ca_file: \"" + secrets.file("ca.pem") +
         "\", verify: " + (verifies ? "true" : "false") + " }";
}

contract::NatsSettings with_ca(const std::string& name) {
  contract::NatsSettings settings;
  settings.ca_file = Secrets::get().file(name + ".pem");
  return settings;
}

contract::NatsSettings with_certificate(const std::string& name) {
  contract::NatsSettings settings = with_ca("ca");
  settings.cert_file = Secrets::get().file(name + ".pem");
  settings.key_file = Secrets::get().file(name + ".key");
  return settings;
}

// "tls://HOST:PORT".
std::string secure_url(const NatsServer& server, const std::string& host) {
  const std::string url = server.url();
  return "tls://" + host + url.substr(url.rfind(':'));
}

// It receives its own messages.
bool works(Peer& peer) {
  peer.connection->subscribe("sl.a.b.test", peer.inbox);
  if (peer.next() != "+") return false;
  return peer.connection->publish("sl.a.b.test", "word") && peer.next() == "word";
}

// It has tried to connect, and reports why it could not.
bool is_refused(const Peer& peer) {
  const bool has_tried =
      eventually([&] { return peer.connection->trouble() != "not yet connected"; });
  return has_tried && !peer.connection->connected();
}

TEST(Secrets, TrustsAServerOfOurAuthorityByNameAndAddress) {
  const NatsServer server(tls_config("server", false));
  for (const std::string host : {"localhost", "127.0.0.1"}) {
    Peer peer(secure_url(server, host), with_ca("ca"));
    EXPECT_TRUE(works(peer)) << host << ": " << peer.connection->trouble();
  }
}

TEST(Secrets, AServerOfAnotherAuthorityIsNotTrusted) {
  const NatsServer server(tls_config("server", false));
  const Peer peer(secure_url(server, "localhost"), with_ca("other-ca"));
  EXPECT_TRUE(is_refused(peer));
  const Peer by_system(secure_url(server, "localhost"));
  EXPECT_TRUE(is_refused(by_system)) << "the system knows no such authority";
}

TEST(Secrets, RejectsAServerWithAnotherHostsCertificate) {
  const NatsServer server(tls_config("elsewhere", false));
  const Peer peer(secure_url(server, "localhost"), with_ca("ca"));
  EXPECT_TRUE(is_refused(peer));
}

TEST(Secrets, RejectsAServerWithoutTlsIfTlsIsConfigured) {
  const NatsServer server;
  const Peer peer(secure_url(server, "localhost"), with_ca("ca"));
  EXPECT_TRUE(is_refused(peer));
}

TEST(Secrets, AServerAcceptsOnlyOurClientCertificate) {
  const NatsServer server(tls_config("server", true));
  Peer peer(secure_url(server, "localhost"), with_certificate("client"));
  EXPECT_TRUE(works(peer)) << peer.connection->trouble();
  const Peer without(secure_url(server, "localhost"), with_ca("ca"));
  EXPECT_TRUE(is_refused(without));
  const Peer stranger(secure_url(server, "localhost"), with_certificate("stranger"));
  EXPECT_TRUE(is_refused(stranger));
}

TEST(Secrets, UsesACorrectedCertificateWithoutARestart) {
  const NatsServer server(tls_config("server", true));
  contract::NatsSettings settings = with_certificate("stranger");
  for (std::string* file : {&settings.cert_file, &settings.key_file}) {
    const std::string copy =
        server.directory() + "/" + std::filesystem::path(*file).filename().string();
    std::filesystem::copy_file(*file, copy);
    *file = copy;
  }
  Peer peer(secure_url(server, "localhost"), settings);
  EXPECT_TRUE(is_refused(peer));
  const auto over = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(Secrets::get().file("client.pem"), settings.cert_file, over);
  std::filesystem::copy_file(Secrets::get().file("client.key"), settings.key_file, over);
  EXPECT_TRUE(works(peer)) << peer.connection->trouble();
}

TEST(Secrets, AServerAcceptsOnlyAKnownNkey) {
  const NatsServer server(Secrets::get().text("nkey.conf"));
  contract::NatsSettings settings;
  settings.nkey_file = Secrets::get().file("user.nk");
  Peer peer(server.url(), settings);
  EXPECT_TRUE(works(peer)) << peer.connection->trouble();
  settings.nkey_file = Secrets::get().file("other.nk");
  const Peer other(server.url(), settings);
  EXPECT_TRUE(is_refused(other));
  const std::string seed = Secrets::get().text("other.nk").substr(0, 20);
  EXPECT_EQ(other.connection->trouble().find(seed), std::string::npos);
  EXPECT_TRUE(is_refused(Peer(server.url())));
}

TEST(Secrets, AJwtUserUsesOnlyPermittedSubjects) {
  const NatsServer server(Secrets::get().text("jwt.conf"));
  contract::NatsSettings settings;
  settings.credentials_file = Secrets::get().file("user.creds");
  Peer peer(server.url(), settings);
  EXPECT_TRUE(works(peer)) << peer.connection->trouble();
  peer.connection->subscribe("sl.other.b.test", peer.inbox);
  std::vector<std::string> events = {peer.next(), peer.next()};
  std::sort(events.begin(), events.end());
  EXPECT_EQ(events, (std::vector<std::string>{"+sl.other.b.test", "lost 0"}));
  EXPECT_TRUE(peer.connection->publish("sl.other.b.test", "x"));
  EXPECT_TRUE(eventually([&] { return peer.has("reason=\"not-permitted\"} 2"); }));
  EXPECT_TRUE(is_refused(Peer(server.url())));
}

TEST(Secrets, AJwtWithAnotherSeedIsRefused) {
  const NatsServer server(Secrets::get().text("jwt.conf"));
  std::string text = Secrets::get().text("user.creds");
  const std::string other = Secrets::get().text("other.nk");
  const std::size_t seed = text.find("\nSU") + 1;
  text.replace(seed, other.size() - 1, other.substr(0, other.size() - 1));
  contract::NatsSettings settings;
  settings.credentials_file = server.directory() + "/other.creds";
  std::ofstream(settings.credentials_file) << text;
  const Peer peer(server.url(), settings);
  EXPECT_TRUE(is_refused(peer));
}

}  // namespace
}  // namespace sightline::nats
