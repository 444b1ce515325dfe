// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/api_credentials.h"

#include "common/base/log.h"
#include "common/runtime/small_file.h"

namespace sightline::config {
namespace {

std::string without_blanks(std::string text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// A header's value ends at a line end, so a token with one would forge another header.
bool is_header_text(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) return false;
  }
  return true;
}

}  // namespace

Credentials::Deps Credentials::machine() {
  return {.read = runtime::read_small_file, .run = run_plugin};
}

Credentials::Credentials(Connection connection, const Clock& clock, Deps sources)
    : connection_(std::move(connection)), clock_(clock), sources_(std::move(sources)) {}

Result<std::string> Credentials::current(const Pem& source, std::optional<CachedText>& held,
                                         std::size_t bytes_max) {
  if (source.file.empty()) return source.text;
  const Instant now = clock_.now();
  if (held && now - held->read_at < kReadAfter) return held->text;
  auto text = sources_.read(source.file, bytes_max);
  if (text.ok()) *text = without_blanks(std::move(*text));
  // An empty token would make requests without a credential.
  if (text.ok() && text->empty()) text = client_error(ErrorCode::InvalidArgument, "is empty");
  if (text.ok()) {
    held = CachedText{std::move(*text), now};
    return held->text;
  }
  if (!held) return with_context(std::move(text).error(), source.file);
  log(LogLevel::Warn, "cannot read a file of credentials again: its last content stays in use",
      {{"file", source.file}, {"problem", text.error().message}});
  // The next attempt comes after kReadAfter, not with the next request.
  held->read_at = now;
  return held->text;
}

Result<Done> Credentials::renew_exec() {
  if (!connection_.user.exec) return Done{};
  const bool is_over = exec_ && exec_->expires && *exec_->expires <= clock_.wall();
  if (exec_ && !is_over) return Done{};
  const ExecPlugin& plugin = *connection_.user.exec;
  const std::string authority =
      SL_TRY(current(connection_.cluster.authority, authority_, kPemBytesMax));
  const std::string text =
      SL_TRY(sources_.run(plugin, exec_info(plugin, connection_.cluster, authority)));
  exec_ = SL_TRY(parse_exec_credential(text, plugin));
  exec_at_ = clock_.now();
  return Done{};
}

Result<std::string> Credentials::token() {
  const User& user = connection_.user;
  if (!user.token_file.empty()) {
    return current({.file = user.token_file, .text = {}}, token_, kTokenBytesMax);
  }
  if (!user.token.empty()) return user.token;
  return exec_ ? exec_->token : std::string();
}

Result<Presented> Credentials::present() {
  const MutexLock lock(mutex_);
  SL_TRY(renew_exec());
  const User& user = connection_.user;
  Presented presented;
  const std::string bearer = SL_TRY(token());
  if (!is_header_text(bearer)) {
    return client_error(ErrorCode::InvalidArgument, "the token is not one line of text");
  }
  if (!bearer.empty()) presented.headers.emplace_back("Authorization", "Bearer " + bearer);
  if (!user.as.empty()) presented.headers.emplace_back("Impersonate-User", user.as);
  if (!user.as_uid.empty()) presented.headers.emplace_back("Impersonate-Uid", user.as_uid);
  for (const std::string& group : user.as_groups) {
    presented.headers.emplace_back("Impersonate-Group", group);
  }
  TlsMaterial tls;
  tls.authority = SL_TRY(current(connection_.cluster.authority, authority_, kPemBytesMax));
  tls.certificate = SL_TRY(current(user.certificate, certificate_, kPemBytesMax));
  tls.key = SL_TRY(current(user.key, key_, kPemBytesMax));
  // The certificate of the plugin counts only if the configuration has no certificate.
  if (tls.certificate.empty() && exec_) {
    tls.certificate = exec_->certificate;
    tls.key = exec_->key;
  }
  // HttpsTransport compares pointers and drops its connections for a new one.
  if (tls_ == nullptr || !(*tls_ == tls)) tls_ = std::make_shared<const TlsMaterial>(tls);
  presented.tls = tls_;
  return presented;
}

void Credentials::on_unauthorized(Instant request_started) {
  const MutexLock lock(mutex_);
  // A value that was read after the request began was not the refused one.
  if (token_ && token_->read_at < request_started) token_.reset();
  if (exec_ && exec_at_ < request_started) exec_.reset();
}

}  // namespace sightline::config
