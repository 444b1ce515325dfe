// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/link.h"

#include <deque>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <nats/nats.h>

#include "common/base/mutex.h"
#include "common/nats/credentials.h"
#include "common/runtime/worker_thread.h"

namespace sightline::nats {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// What NATS holds for each subscription between its receiving thread and ours. Our thread only
// passes messages on.
constexpr int kPendingMessagesMax = 1 << 20;
constexpr int kPendingBytesMax = 64 << 20;

// How many ended subscriptions are kept until the server has answered again.
constexpr std::size_t kGivenUpMax = 256;
constexpr Duration kGivenUpFlushTime = std::chrono::seconds(2);

std::int64_t count_ms(Duration time) { return duration_cast<milliseconds>(time).count(); }

Error failed(natsStatus status, std::string_view what) {
  const bool is_refused = status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED;
  std::string message(what);
  message += ": ";
  message += natsStatus_GetText(status);
  return worker_error(is_refused ? ErrorCode::Unauthorized : ErrorCode::Unavailable, message, true);
}

// What the callbacks may use. `is_open` is false when the link must not call back any more.
struct CallbackState {
  Mutex mutex;
  bool is_open SL_GUARDED_BY(mutex) = true;
  LinkCallbacks callbacks SL_GUARDED_BY(mutex);
};

// Belongs to a subscription of NATS, until its last message.
struct Route {
  std::shared_ptr<CallbackState> told;
  Listener listener;
  // Guarded by `told->mutex`:
  std::int64_t dropped = 0;  // the part that was reported
  std::int64_t unheard = 0;  // for which there was no memory
};

// NATS does not say after which callback of a connection no other follows. The newest objects are
// kept. An older one cannot have an active callback, because each connection lasted at least one
// back-off.
void keep_for_late_callbacks(std::shared_ptr<CallbackState> told) {
  static Mutex mutex;
  // Never destroyed, because threads of NATS may outlive main().
  static auto& kept = *std::make_unique<std::deque<std::shared_ptr<CallbackState>>>().release();
  constexpr std::size_t kKept = 256;
  const MutexLock lock(mutex);
  kept.push_back(std::move(told));
  if (kept.size() > kKept) kept.pop_front();
}

void tell_dropped(natsSubscription* subscription, Route& route) {
  std::int64_t dropped = 0;
  if (natsSubscription_GetDropped(subscription, &dropped) != NATS_OK) return;
  dropped += route.unheard;
  if (dropped <= route.dropped) return;
  route.listener.lost(static_cast<std::uint64_t>(dropped - route.dropped));
  route.dropped = dropped;
}

std::string text_or_empty(const char* text) { return text == nullptr ? std::string() : text; }

void hear(natsSubscription* subscription, natsMsg* message, Route& route) {
  // First, because a loss must come before the messages after it.
  tell_dropped(subscription, route);
  route.listener.message(natsMsg_GetSubject(message), text_or_empty(natsMsg_GetReply(message)),
                         std::string(natsMsg_GetData(message),
                                     static_cast<std::size_t>(natsMsg_GetDataLength(message))));
}

void on_message(natsConnection* /*connection*/, natsSubscription* subscription, natsMsg* message,
                void* closure) {
  auto& route = *static_cast<Route*>(closure);
  {
    const MutexLock lock(route.told->mutex);
    // NATS' code knows no exceptions. A message without memory is a loss, reported now or with the
    // next one.
    const bool is_heard =
        !route.told->is_open || run_step([&] { hear(subscription, message, route); });
    if (!is_heard) {
      ++route.unheard;
      run_step([&] { tell_dropped(subscription, route); });
    }
  }
  natsMsg_Destroy(message);
}

void on_last_message(void* closure) {
  const std::unique_ptr<Route> ended(static_cast<Route*>(closure));
}

std::string last_error(natsConnection* connection) {
  const char* text = nullptr;
  const natsStatus status = natsConnection_GetLastError(connection, &text);
  if (text != nullptr && *text != '\0') return text;
  return status == NATS_OK ? "the server closed the connection" : natsStatus_GetText(status);
}

void on_closed(natsConnection* connection, void* closure) {
  auto& told = *static_cast<CallbackState*>(closure);
  const MutexLock lock(told.mutex);
  if (!told.is_open) return;
  try {
    told.callbacks.closed(last_error(connection));
  } catch (const std::bad_alloc&) {
    note_failed_step();
    told.callbacks.closed({});  // allocates no memory
  }
}

// The subject in 'Permissions Violation for Subscription to "a.b"'. Empty: the text has no subject.
std::string refused_subject(std::string_view text) {
  const std::size_t begin = text.find('"');
  if (begin == std::string_view::npos) return {};
  const std::size_t end = text.find('"', begin + 1);
  if (end == std::string_view::npos) return {};
  return std::string(text.substr(begin + 1, end - begin - 1));
}

// A slow reader gets its losses with the next message. The text of a refusal may be that of a later
// refusal already. Then one subject is reported twice and another without its name, but each is
// reported.
void on_error(natsConnection* connection, natsSubscription* /*subscription*/, natsStatus status,
              void* closure) {
  if (status != NATS_NOT_PERMITTED) return;
  auto& told = *static_cast<CallbackState*>(closure);
  const MutexLock lock(told.mutex);
  if (!told.is_open) return;
  try {
    const std::string text = last_error(connection);
    const bool is_publish = text.find("Publish") != std::string::npos;
    if (is_publish) return told.callbacks.publish_refused(text);
    told.callbacks.refused(refused_subject(text), text);
  } catch (const std::bad_alloc&) {
    note_failed_step();
  }
}

// The options of one attempt. The first failure counts.
class Options {
 public:
  Options() : status_(natsOptions_Create(&options_)) {}
  ~Options() { natsOptions_Destroy(options_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  template <class Setter, class... Values>
  void set(std::string_view what, Setter setter, Values... values) {
    if (status_ != NATS_OK) return;
    status_ = setter(options_, values...);
    what_ = what;
  }
  [[nodiscard]] Result<natsOptions*> get() const {
    if (status_ == NATS_OK) return options_;
    return client_error(ErrorCode::InvalidArgument, what_ + ": " + natsStatus_GetText(status_));
  }

 private:
  natsOptions* options_ = nullptr;
  natsStatus status_;
  std::string what_ = "NATS options";
};

void set_behaviour(Options& options, const LinkOptions& wanted, CallbackState* told) {
  const std::string_view what = "NATS options";
  options.set("nats.urls", natsOptions_SetURL, wanted.server.url.c_str());
  options.set(what, natsOptions_SetName, wanted.name.c_str());
  // Connection reconnects itself, because its inboxes must learn of each gap.
  options.set(what, natsOptions_SetAllowReconnect, false);
  options.set(what, natsOptions_SetTimeout, count_ms(Link::kConnectTimeout));
  options.set(what, natsOptions_SetPingInterval, count_ms(Link::kPingInterval));
  options.set(what, natsOptions_SetMaxPingsOut, Link::kPingsUnanswered);
  options.set(what, natsOptions_SetWriteDeadline, count_ms(Link::kWriteDeadline));
  options.set(what, natsOptions_SetMaxPendingMsgs, kPendingMessagesMax);
  options.set(what, natsOptions_SetNoEcho, false);
  options.set(what, natsOptions_SetSendAsap, wanted.sends_at_once);
  // Threads of the library deliver for all subscriptions, instead of one thread for each.
  options.set(what, natsOptions_UseGlobalMessageDelivery, true);
  options.set(what, natsOptions_SetClosedCB, on_closed, static_cast<void*>(told));
  options.set(what, natsOptions_SetErrorHandler, on_error, static_cast<void*>(told));
}

void set_tls(Options& options, const LinkOptions& wanted) {
  const contract::NatsSettings& files = wanted.settings;
  if (!wanted.server.is_secure && files.ca_file.empty() && files.cert_file.empty()) return;
  options.set("TLS", natsOptions_SetSecure, true);
  // The server's certificate must name this host.
  options.set("TLS", natsOptions_SetExpectedHostname, wanted.server.host.c_str());
  if (!files.ca_file.empty()) {
    options.set("nats.ca_file", natsOptions_LoadCATrustedCertificates, files.ca_file.c_str());
  }
  if (!files.cert_file.empty()) {
    options.set("nats.cert_file and nats.key_file", natsOptions_LoadCertificatesChain,
                files.cert_file.c_str(), files.key_file.c_str());
  }
}

void set_credentials(Options& options, const Credentials& credentials,
                     const contract::NatsSettings& files) {
  // Null: the seed is in the same file as the JWT.
  const char* seed_file = nullptr;
  switch (credentials.kind) {
    case Credentials::Kind::None:
      return;
    case Credentials::Kind::Jwt:
      return options.set("nats.credentials_file", natsOptions_SetUserCredentialsFromFiles,
                         files.credentials_file.c_str(), seed_file);
    case Credentials::Kind::Password:
      return options.set("nats.credentials_file", natsOptions_SetUserInfo, credentials.user.c_str(),
                         credentials.secret.c_str());
    case Credentials::Kind::Token:
      return options.set("nats.credentials_file", natsOptions_SetToken, credentials.secret.c_str());
    case Credentials::Kind::Nkey:
      return options.set("nats.nkey_file", natsOptions_SetNKeyFromSeed, credentials.user.c_str(),
                         files.nkey_file.c_str());
  }
}

}  // namespace

struct Link::State {
  std::shared_ptr<CallbackState> told = std::make_shared<CallbackState>();
  natsConnection* connection = nullptr;
  std::map<std::string, natsSubscription*> subscriptions;
  // Subscriptions that have ended. NATS' receiving thread looks a subscription up, and uses it
  // without owning it (cnats 3.4.1, natsConn_processMsg). It may be freed only when that thread has
  // processed everything it read before the end.
  std::vector<natsSubscription*> given_up;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    {
      const MutexLock lock(told->mutex);
      told->is_open = false;
    }
    natsConnection_Close(connection);  // waits for the receiving thread
    for (const auto& [subject, subscription] : subscriptions) given_up.push_back(subscription);
    destroy(given_up);
    natsConnection_Destroy(connection);
    keep_for_late_callbacks(told);
  }

  static void destroy(const std::vector<natsSubscription*>& subscriptions) {
    for (natsSubscription* subscription : subscriptions) natsSubscription_Destroy(subscription);
  }
};

Link::Link(std::unique_ptr<State> state) : state_(std::move(state)) {}
Link::~Link() = default;

Result<std::unique_ptr<Link>> Link::connect(const LinkOptions& options, LinkCallbacks callbacks) {
  const Credentials credentials = SL_TRY(read_credentials(options.settings));
  auto state = std::make_unique<State>();
  {
    const MutexLock lock(state->told->mutex);
    state->told->callbacks = std::move(callbacks);
  }
  Options wanted;
  set_behaviour(wanted, options, state->told.get());
  set_tls(wanted, options);
  set_credentials(wanted, credentials, options.settings);
  natsOptions* native = SL_TRY(wanted.get());
  const natsStatus status = natsConnection_Connect(&state->connection, native);
  if (status != NATS_OK) return failed(status, options.server.url);
  return std::make_unique<Link>(std::move(state));
}

Result<Done> Link::subscribe(const std::string& subject, Listener listener) {
  auto route = std::make_unique<Route>();
  route->told = state_->told;
  route->listener = std::move(listener);
  natsSubscription* subscription = nullptr;
  natsStatus status = natsConnection_Subscribe(&subscription, state_->connection, subject.c_str(),
                                               on_message, route.get());
  if (status != NATS_OK) return failed(status, "subscribing");
  // From here on the subscription owns it, and deletes it after the last message.
  Route* owned = route.release();
  status = natsSubscription_SetOnCompleteCB(subscription, on_last_message, owned);
  if (status == NATS_OK) {
    status = natsSubscription_SetPendingLimits(subscription, kPendingMessagesMax, kPendingBytesMax);
  }
  state_->subscriptions.emplace(subject, subscription);
  if (status != NATS_OK) return failed(status, "subscribing");
  return Done{};
}

void Link::unsubscribe(const std::string& subject) {
  const auto found = state_->subscriptions.find(subject);
  if (found == state_->subscriptions.end()) return;
  natsSubscription_Unsubscribe(found->second);
  state_->given_up.push_back(found->second);
  state_->subscriptions.erase(found);
  // If the server does not answer, the link is about to end.
  if (state_->given_up.size() >= kGivenUpMax) static_cast<void>(flush(kGivenUpFlushTime));
}

Result<Done> Link::publish(const std::string& subject, std::string_view payload) {
  const natsStatus status = natsConnection_Publish(
      state_->connection, subject.c_str(), payload.data(), static_cast<int>(payload.size()));
  if (status != NATS_OK) return failed(status, "sending");
  return Done{};
}

Result<Done> Link::flush(Duration time_max) {
  const natsStatus status = natsConnection_FlushTimeout(state_->connection, count_ms(time_max));
  // The answer came through the receiving thread, so this thread has processed all messages before
  // it.
  if (status == NATS_OK) State::destroy(std::exchange(state_->given_up, {}));
  if (status != NATS_OK) return failed(status, "waiting for the server");
  return Done{};
}

std::size_t Link::payload_max() const {
  const std::int64_t bytes = natsConnection_GetMaxPayload(state_->connection);
  // 1 MiB is the default of NATS.
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{1} << 20U;
}

}  // namespace sightline::nats
