// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/hosts/servers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/runtime/worker_thread.h"

namespace sightline::hosts {
namespace {

// How long each server gets for an answer. It doubles with each round.
constexpr int kAnswerTimeout_ms = 1000;
constexpr int kRounds = 3;
// The answers to many names arrive together.
constexpr int kReceiveBufferBytes = 1 << 20;
constexpr std::size_t kAddressesMax = 16;  // of one name
constexpr const char* kServersFile = "/etc/resolv.conf";

// A look-up that a caller has ordered.
struct LookupOrder {
  std::string name;
  Lookup::Done done;
};

// A value that changes when the file's content changes.
using Version = std::array<std::int64_t, 5>;

Version version_of(const char* file) {
  struct stat s {};
  if (::stat(file, &s) != 0) return {-1};
  return {static_cast<std::int64_t>(s.st_ino), s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec,
          s.st_ctim.tv_nsec};
}

LookupFailure trouble_of(int status) {
  switch (status) {
    case ARES_SUCCESS:
      return LookupFailure::None;
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_EBADNAME:
    case ARES_EBADSTR:
      return LookupFailure::Unknown;
    default:
      return LookupFailure::Unanswered;
  }
}

std::vector<asio::ip::address> addresses_of(const ares_addrinfo* found) {
  std::vector<asio::ip::address> addresses;
  for (auto* node = found->nodes; node != nullptr; node = node->ai_next) {
    if (addresses.size() == kAddressesMax) break;
    if (node->ai_family == AF_INET) {
      sockaddr_in v4{};
      std::memcpy(&v4, node->ai_addr, sizeof v4);
      addresses.emplace_back(asio::ip::address_v4(ntohl(v4.sin_addr.s_addr)));
    } else if (node->ai_family == AF_INET6) {
      sockaddr_in6 v6{};
      std::memcpy(&v6, node->ai_addr, sizeof v6);
      asio::ip::address_v6::bytes_type bytes{};
      std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
      addresses.emplace_back(asio::ip::address_v6(bytes, v6.sin6_scope_id));
    }
  }
  return addresses;
}

// The questions that were sent under one version of /etc/resolv.conf.
class Channel {
 public:
  explicit Channel(const Version& version) : version_(version) {
    ares_options options{};
    options.timeout = kAnswerTimeout_ms;
    options.tries = kRounds;
    options.socket_receive_buffer_size = kReceiveBufferBytes;
    std::array<char, 3> lookups{"fb"};  // the hosts file, then name servers
    options.lookups = lookups.data();
    options.sock_state_cb = [](void* self, ares_socket_t socket, int read, int write) {
      // c-ares knows no exceptions. An unwatched socket times out.
      run_step([&] { static_cast<Channel*>(self)->watch(socket, read != 0, write != 0); });
    };
    options.sock_state_cb_data = this;
    constexpr int kGiven = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_RCVBUF |
                           ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
    if (ares_init_options(&channel_, &options, kGiven) != ARES_SUCCESS) channel_ = nullptr;
  }
  ~Channel() {
    is_ending_ = true;
    if (channel_ != nullptr) ares_destroy(channel_);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] const Version& version() const { return version_; }
  [[nodiscard]] bool idle() const { return open_ == 0; }
  [[nodiscard]] const std::map<int, short>& sockets() const { return sockets_; }

  void ask(const LookupOrder& order) {
    if (channel_ == nullptr) {
      order.done({{}, LookupFailure::Unanswered});
      return;
    }
    auto question = std::make_unique<DnsQuery>(DnsQuery{this, order});
    ++open_;
    // answered() deletes it.
    send(question.release(), AF_UNSPEC);
  }

  void process(int socket, short events) {
    const bool reads = (events & (POLLIN | POLLERR | POLLHUP)) != 0;
    const bool writes = (events & POLLOUT) != 0;
    ares_process_fd(channel_, reads ? socket : ARES_SOCKET_BAD, writes ? socket : ARES_SOCKET_BAD);
  }
  void process_timeouts() {
    if (channel_ != nullptr) ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  }
  // Milliseconds until the next timeout, at most `longest`.
  [[nodiscard]] int timeout_ms(int longest) const {
    if (channel_ == nullptr) return longest;
    timeval most{.tv_sec = longest / 1000, .tv_usec = (longest % 1000) * 1000};
    timeval left{};
    const timeval* next = ares_timeout(channel_, &most, &left);
    return static_cast<int>(next->tv_sec * 1000 + (next->tv_usec + 999) / 1000);
  }

 private:
  struct DnsQuery {
    Channel* channel;
    LookupOrder order;
    int family = AF_UNSPEC;
    bool was_unanswered = false;  // the question for IPv4
  };

  void watch(int socket, bool reads, bool writes) {
    if (!reads && !writes) {
      sockets_.erase(socket);
      return;
    }
    sockets_[socket] = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  }

  void send(DnsQuery* question, int family) {
    question->family = family;
    ares_addrinfo_hints hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(channel_, question->order.name.c_str(), nullptr, &hints, answered, question);
  }

  static void answered(void* asked, int status, int /*timeouts*/, ares_addrinfo* found) {
    std::unique_ptr<DnsQuery> question(static_cast<DnsQuery*>(asked));
    Channel& channel = *question->channel;
    Resolved name{{}, trouble_of(status)};
    if (found != nullptr) {
      const bool is_read =
          status != ARES_SUCCESS || run_step([&] { name.addresses = addresses_of(found); });
      if (!is_read) name.trouble = LookupFailure::Unanswered;
      ares_freeaddrinfo(found);
    }
    if (channel.is_ending_ || status == ARES_EDESTRUCTION) return;
    // "No data" may hide that the question for one of the two families had no answer, so ask each.
    if (status == ARES_ENODATA && question->family == AF_UNSPEC) {
      channel.send(question.release(), AF_INET);
      return;
    }
    if (question->family == AF_INET && name.addresses.empty()) {
      question->was_unanswered = name.trouble == LookupFailure::Unanswered;
      channel.send(question.release(), AF_INET6);
      return;
    }
    --channel.open_;
    if (name.trouble == LookupFailure::None && name.addresses.empty()) {
      name.trouble = LookupFailure::Unknown;
    }
    if (name.addresses.empty() && question->was_unanswered)
      name.trouble = LookupFailure::Unanswered;
    run_step([&] { question->order.done(name); });
  }

  const Version version_;
  ares_channel channel_ = nullptr;
  std::map<int, short> sockets_;  // and the events to wait for
  std::size_t open_ = 0;          // questions without an answer
  bool is_ending_ = false;
};

}  // namespace

struct Servers::State {
  // The most time between two checks for timeouts, while a question is open.
  static constexpr int kLongestWait_ms = 1000;

  const int wake_up = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

  Mutex mutex;
  std::vector<LookupOrder> orders SL_GUARDED_BY(mutex);
  bool stopped SL_GUARDED_BY(mutex) = false;
  std::optional<WorkerThread> thread SL_GUARDED_BY(mutex);

  // Only the thread uses these. The last channel takes new questions. An older channel ends with
  // its last question.
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<LookupOrder> taken;  // not asked yet

  void run(const std::stop_token& stop) {
    // A failed step ends only itself. What it had taken stays in `taken`.
    while (!stop.stop_requested()) {
      run_step([this] {
        take_orders();
        std::erase_if(channels, [this](const std::unique_ptr<Channel>& channel) {
          return channel->idle() && channel != channels.back();
        });
        wait();
      });
    }
    channels.clear();
  }

  void take_orders() {
    if (taken.empty()) {
      const MutexLock lock(mutex);
      taken.swap(orders);
    }
    if (taken.empty()) return;
    const auto version = version_of(kServersFile);
    if (channels.empty() || channels.back()->version() != version) {
      channels.push_back(std::make_unique<Channel>(version));
    }
    for (; !taken.empty(); taken.pop_back()) channels.back()->ask(taken.back());
  }

  void wait() {
    std::vector<pollfd> polled{{.fd = wake_up, .events = POLLIN, .revents = 0}};
    std::vector<Channel*> owners{nullptr};
    int timeout_ms = -1;
    for (const auto& channel : channels) {
      if (channel->idle()) continue;
      timeout_ms = channel->timeout_ms(timeout_ms < 0 ? kLongestWait_ms : timeout_ms);
      for (const auto& [socket, events] : channel->sockets()) {
        polled.push_back({.fd = socket, .events = events, .revents = 0});
        owners.push_back(channel.get());
      }
    }
    ::poll(polled.data(), polled.size(), timeout_ms);
    eventfd_t cleared = 0;
    if (polled[0].revents != 0) eventfd_read(wake_up, &cleared);
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) owners[i]->process(polled[i].fd, polled[i].revents);
    }
    for (const auto& channel : channels) channel->process_timeouts();
  }
};

Servers::Servers() : state_(std::make_unique<State>()) { SL_CHECK(state_->wake_up >= 0); }

Servers::~Servers() {
  stop();
  ::close(state_->wake_up);
}

void Servers::stop() {
  std::optional<WorkerThread> thread;
  {
    const MutexLock lock(state_->mutex);
    state_->stopped = true;
    thread.swap(state_->thread);
  }
  if (!thread) return;
  // The thread is joined when `thread` is destroyed, outside of the lock.
  thread->request_stop();
  eventfd_write(state_->wake_up, 1);
}

void Servers::ask(const std::string& name, Lookup::Done done) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->stopped) return;
    state_->orders.push_back({name, std::move(done)});
    if (!state_->thread) {
      state_->thread.emplace(
          "names", [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
    }
  }
  eventfd_write(state_->wake_up, 1);
}

}  // namespace sightline::hosts
