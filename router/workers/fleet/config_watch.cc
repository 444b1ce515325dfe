// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/config_watch.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/runtime/worker_thread.h"

namespace sightline::fleet {
namespace {

namespace fs = std::filesystem;

// A file whose events never pause is read after this many quiet times.
constexpr int kQuietWaitsMax = 20;
constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Error file_error(ErrorCode code, const std::string& file, const std::string& why) {
  return client_error(code, file + ": " + why);
}

}  // namespace

Result<std::string> read_config_file(const std::string& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) {
    const bool is_absent = error == std::errc::no_such_file_or_directory;
    return file_error(is_absent ? ErrorCode::NotFound : ErrorCode::Unavailable, file,
                      error.message());
  }
  // Checked before the memory for the content is allocated.
  if (size > kConfigBytesMax) return file_error(ErrorCode::TooLarge, file, "larger than 4 MiB");
  std::ifstream stream(file, std::ios::binary);
  std::string content(size, '\0');
  stream.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!stream.is_open() || stream.bad()) {
    return file_error(ErrorCode::Unavailable, file, "cannot be read");
  }
  // The file may have become shorter since its size was read.
  content.resize(static_cast<std::size_t>(stream.gcount()));
  return content;
}

struct ConfigWatch::State {
  State(Options watch_options, std::function<void(Result<std::string>)> callback)
      : options(std::move(watch_options)),
        changed(std::move(callback)),
        notify(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
        asked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  const Options options;
  const std::function<void(Result<std::string>)> changed;
  const FileDescriptor notify;
  const FileDescriptor asked;  // wakes the thread, to reread or to end
  std::atomic<bool> is_ending = false;
  std::optional<std::string> last;  // last reported content, absent while unreadable
  std::optional<WorkerThread> thread;

  // Whether the content can change through this name in the directory. It can for the file itself,
  // and, if it is a link, for the first step of its path ("..data" in a mounted ConfigMap).
  [[nodiscard]] bool concerns(std::string_view name) const {
    const fs::path file(options.file);
    std::error_code error;
    const fs::path target = fs::read_symlink(file, error);
    return name == file.filename() || (!error && !target.empty() && name == *target.begin());
  }

  // Reads all waiting events. Returns whether one of them may concern the file.
  bool take_events() const {
    alignas(inotify_event) std::array<char, 16384> buffer{};
    bool is_concerned = false;
    for (;;) {
      const auto size = read(notify.get(), buffer.data(), buffer.size());
      if (size <= 0) return is_concerned;
      for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof event);
        const char* name = buffer.data() + at + sizeof event;
        // After an overflow the kernel has dropped events, so any file may have changed.
        const bool is_overflow = (event.mask & IN_Q_OVERFLOW) != 0;
        is_concerned = is_concerned || is_overflow || (event.len > 0 && concerns(name));
        at += sizeof event + event.len;
      }
    }
  }

  enum class Woken : std::uint8_t { Timeout, Event, Reread, End };

  // Waits for an event or a request. A timeout of -1 waits without limit.
  [[nodiscard]] Woken wait(int timeout_ms) const {
    std::array<pollfd, 2> polled = {{{notify.get(), POLLIN, 0}, {asked.get(), POLLIN, 0}}};
    const int ready = poll(polled.data(), polled.size(), timeout_ms);
    // The end comes first: a busy file must not delay it.
    if (is_ending) return Woken::End;
    if (ready <= 0) return Woken::Timeout;
    std::uint64_t times = 0;
    if (read(asked.get(), &times, sizeof times) > 0) return Woken::Reread;
    return Woken::Event;
  }

  void ask() const {
    const std::uint64_t one = 1;
    // The counter overflows only after 2^64 - 1 requests.
    [[maybe_unused]] const auto written = write(asked.get(), &one, sizeof one);
  }

  // Returns whether `changed` was called.
  bool look() {
    Result<std::string> content = read_config_file(options.file);
    std::optional<std::string> now;
    if (content.ok()) now = *content;
    if (now == last) return false;
    changed(std::move(content));
    // After the call: if it runs out of memory, the next look reports the content again.
    last = std::move(now);
    return true;
  }

  void reread() {
    if (look()) return;
    log(LogLevel::Info,
        last ? "the configuration file was read again: it is unchanged"
             : "the configuration file still cannot be read",
        {{"file", options.file}});
  }

  // Reads the file when its events pause. Returns false if the watch ends.
  bool settle() {
    for (int i = 0; i < kQuietWaitsMax; ++i) {
      const Woken woken = wait(static_cast<int>(options.debounce.count()));
      if (woken == Woken::End) return false;
      if (woken == Woken::Timeout) break;
      take_events();
    }
    look();
    return true;
  }

  // Returns false if the watch ends.
  bool turn() {
    const Woken woken = wait(-1);
    if (woken == Woken::Reread) reread();
    if (woken == Woken::Event && take_events()) return settle();
    return woken != Woken::End;
  }

  void run() {
    for (bool goes_on = true; goes_on;) {
      const bool is_done = run_step([&] { goes_on = turn(); });
      if (!is_done) ask();  // reads the file again
    }
  }
};

ConfigWatch::ConfigWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}

ConfigWatch::~ConfigWatch() {
  state_->is_ending = true;
  state_->ask();
  state_->thread.reset();
}

void ConfigWatch::reread() { state_->ask(); }

Result<std::unique_ptr<ConfigWatch>> ConfigWatch::create(
    Options options, std::function<void(Result<std::string>)> changed) {
  auto state = std::make_unique<State>(std::move(options), std::move(changed));
  const std::string& file = state->options.file;
  fs::path directory = fs::path(file).parent_path();
  if (directory.empty()) directory = ".";
  const bool is_open = state->notify.get() >= 0 && state->asked.get() >= 0;
  if (!is_open || inotify_add_watch(state->notify.get(), directory.c_str(), kEvents) < 0) {
    const std::string why = std::generic_category().message(errno);
    return file_error(ErrorCode::Unavailable, file, "its directory cannot be watched: " + why);
  }
  // The file is read after the watch began. So a change in between is seen by the watch or by this
  // reading.
  state->last = SL_TRY(read_config_file(file));
  State* const watched = state.get();
  state->thread.emplace("config-watch", [watched](const std::stop_token&) { watched->run(); });
  return std::make_unique<ConfigWatch>(std::move(state));
}

}  // namespace sightline::fleet
