// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/integration/kube/tls_server.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/check.h"

#include "tests/fakes/raw_socket.h"

namespace sightline::test {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Key new_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

template <class Write>
std::string pem(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  SL_CHECK(write(out.get()) == 1);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  return pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}
std::string pem_of(EVP_PKEY* key) {
  return pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  SL_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Certificate named(const std::string& name, EVP_PKEY* key) {
  static std::atomic<long> serial{1};
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86400);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

X509* read_certificate(const std::string& text) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  return PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr);
}

EVP_PKEY* read_key(const std::string& text) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  return PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr);
}

std::string client_name(SSL* tls) {
  const Certificate shown(SSL_get1_peer_certificate(tls), &X509_free);
  if (!shown) return {};
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(shown.get()), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  return name.data();
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Reads one request, or nothing at the end of the connection. Bytes read beyond it stay in `ahead`.
std::optional<Conversation> read_request(SSL* tls, std::string& ahead) {
  std::array<char, 16384> piece{};
  const auto more = [&] {
    const int got = SSL_read(tls, piece.data(), static_cast<int>(piece.size()));
    if (got > 0) ahead.append(piece.data(), static_cast<std::size_t>(got));
    return got > 0;
  };
  std::size_t end = 0;
  while ((end = ahead.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  Conversation request;
  const std::string head = ahead.substr(0, end + 2);
  ahead.erase(0, end + 4);
  const std::size_t first = head.find(' ');
  const std::size_t second = head.find(' ', first + 1);
  request.method = head.substr(0, first);
  request.target = head.substr(first + 1, second - first - 1);
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const std::size_t line_end = head.find("\r\n", at);
    const std::size_t colon = head.find(':', at);
    const std::size_t value = head.find_first_not_of(' ', colon + 1);
    request.headers[lower(head.substr(at, colon - at))] = head.substr(value, line_end - value);
    at = line_end + 2;
  }
  const std::size_t size = request.headers.contains("content-length")
                               ? std::stoul(request.headers["content-length"])
                               : 0;
  while (ahead.size() < size) {
    if (!more()) return std::nullopt;
  }
  request.body = ahead.substr(0, size);
  ahead.erase(0, size);
  return request;
}

}  // namespace

struct Authority::State {
  Key key = new_key();
  Certificate certificate{nullptr, &X509_free};
};

Authority::Authority(const std::string& name) : state_(std::make_unique<State>()) {
  state_->certificate = named(name, state_->key.get());
  X509* own = state_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(own, state_->key.get(), EVP_sha256());
}

Authority::~Authority() = default;

std::string Authority::certificate() const { return pem_of(state_->certificate.get()); }

Issued Authority::issue(const std::string& name) const {
  const Key key = new_key();
  const Certificate certificate = named(name, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(state_->certificate.get()));
  extend(certificate.get(), state_->certificate.get(), NID_subject_alt_name,
         "DNS:" + name + ",IP:127.0.0.1,IP:::1");
  X509_sign(certificate.get(), state_->key.get(), EVP_sha256());
  return {pem_of(certificate.get()), pem_of(key.get())};
}

void Conversation::answer(int status, std::string_view text, std::string_view more) const {
  send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
       std::string(more) + "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" +
       std::string(text));
}

TlsServer::TlsServer(const Issued& own, const std::string& client_authority, Handle handle)
    : handle_(std::move(handle)), client_authority_(client_authority), own_(own) {
  std::signal(SIGPIPE, SIG_IGN);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = fakes::loopback(0);
  socklen_t size = sizeof address;
  SL_CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  SL_CHECK(::listen(listener_, 64) == 0);
  SL_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] { accept(); });
}

TlsServer::~TlsServer() {
  is_stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  threads_.clear();
}

std::string TlsServer::url(const std::string& host) const {
  return "https://" + host + ":" + std::to_string(port_);
}

void TlsServer::use(const Issued& own) {
  const std::lock_guard lock(mutex_);
  own_ = own;
}

void TlsServer::accept() {
  while (!is_stopping_) {
    const int socket = ::accept(listener_, nullptr, nullptr);
    if (socket < 0) continue;
    const std::lock_guard lock(mutex_);
    sockets_.insert(socket);
    const int number = ++connections_;
    threads_.emplace_back([this, socket, number] { serve(socket, number); });
  }
}

void TlsServer::serve(int socket, int number) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  &SSL_CTX_free);
  Issued own;
  {
    const std::lock_guard lock(mutex_);
    own = own_;
  }
  const Certificate certificate(read_certificate(own.certificate), &X509_free);
  const Key key(read_key(own.key), &EVP_PKEY_free);
  SSL_CTX_use_certificate(context.get(), certificate.get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  if (!client_authority_.empty()) {
    const Certificate authority(read_certificate(client_authority_), &X509_free);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(tls.get(), socket);
  bool is_open = SSL_accept(tls.get()) == 1;
  std::string ahead;
  while (is_open && !is_stopping_) {
    auto request = read_request(tls.get(), ahead);
    if (!request) break;
    request->client = client_name(tls.get());
    request->connection = number;
    request->send = [&](std::string_view bytes) {
      return SSL_write(tls.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
    };
    request->linger = [&] {
      std::array<char, 1> byte{};
      SSL_read(tls.get(), byte.data(), 1);
    };
    is_open = handle_(*request);
  }
  ERR_clear_error();
  const std::lock_guard lock(mutex_);
  sockets_.erase(socket);
  ::close(socket);
}

}  // namespace sightline::test
