// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/line_writer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "common/base/mutex.h"

namespace sightline {
namespace {

using std::chrono::milliseconds;

// Lines within this time share one write, which saves system calls under load.
constexpr milliseconds kBatchTime{10};
// How often a thread that waits for its reader checks whether it must end.
constexpr milliseconds kEndCheckTime{100};
// A buffer above this size is freed after use. A burst would otherwise keep its memory.
constexpr std::size_t kKeptBytes = 64U << 10U;

std::uint64_t lines_of(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// The bytes of one write: whole lines that fit into PIPE_BUF, which a pipe takes in one piece.
// Lines of several processes in one pipe therefore do not mix.
std::string_view piece_of(std::string_view text) {
  const std::string_view piece = text.substr(0, PIPE_BUF);
  const std::size_t end = piece.rfind('\n');
  return end == std::string_view::npos ? piece : piece.substr(0, end + 1);
}

bool is_writable(int fd, milliseconds timeout) {
  pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&polled, 1, static_cast<int>(timeout.count())) > 0;
}

// Returns the bytes written. 0: try again. Nothing: the descriptor cannot be written.
std::optional<std::size_t> write_piece(int fd, std::string_view piece) {
  const auto written = ::write(fd, piece.data(), piece.size());
  if (written >= 0) return static_cast<std::size_t>(written);
  if (errno == EINTR || errno == EAGAIN) return 0;
  return std::nullopt;
}

}  // namespace

struct LineWriter::State {
  explicit State(Options given) : options(std::move(given)) {}

  const Options options;
  std::atomic<std::uint64_t> dropped = 0;
  std::atomic<bool> gives_up = false;  // the thread need not write the rest

  Mutex mutex;
  CondVar work;
  CondVar done;
  std::string held SL_GUARDED_BY(mutex);
  std::uint64_t untold SL_GUARDED_BY(mutex) = 0;  // dropped, and not reported yet
  bool is_asleep SL_GUARDED_BY(mutex) = false;    // the thread waits for `work`
  bool is_writing SL_GUARDED_BY(mutex) = false;   // the thread writes a batch
  bool is_hurried SL_GUARDED_BY(mutex) = false;   // a caller of flush() waits
  bool is_ending SL_GUARDED_BY(mutex) = false;
  bool has_ended SL_GUARDED_BY(mutex) = false;

  void write(std::string_view lines) {
    bool wakes = false;
    {
      const MutexLock lock(mutex);
      if (is_ending || held.size() + lines.size() > options.held_bytes_max) {
        const std::uint64_t count = lines_of(lines);
        untold += count;
        dropped.fetch_add(count, std::memory_order_relaxed);
        return;
      }
      held += lines;
      wakes = std::exchange(is_asleep, false);
    }
    // Outside of the lock, or the thread would wake only to wait for it.
    if (wakes) work.notify_one();
  }

  bool flush(Duration time_max) {
    const MutexLock lock(mutex);
    is_hurried = true;
    // Ends the thread's wait and, with is_hurried, its pause between batches.
    is_asleep = false;
    work.notify_one();
    return done.wait_for(mutex, time_max,
                         [this]() SL_REQUIRES(mutex) { return held.empty() && !is_writing; });
  }

  // The lines of one write. The last line may report `told` dropped lines.
  struct Batch {
    std::string text;
    std::uint64_t told = 0;
  };

  void run() {
    Batch batch;
    Instant next{};  // the earliest time of the next write
    while (take(batch, next)) {
      write_out(batch);
      next = system_clock().now() + kBatchTime;
      // swap() frees the memory, clear() would not.
      if (batch.text.capacity() > kKeptBytes) std::string().swap(batch.text);
      batch.text.clear();
    }
    const MutexLock lock(mutex);
    has_ended = true;
    done.notify_all();
  }

  // Fills the batch with all lines that wait, after a pause that collects more. Returns false at
  // the end.
  bool take(Batch& batch, Instant next) {
    const MutexLock lock(mutex);
    is_writing = false;
    if (held.empty()) {
      is_hurried = false;
      done.notify_all();
    }
    while (held.empty() && !is_ending) {
      is_asleep = true;
      work.wait(mutex, [this]() SL_REQUIRES(mutex) { return !is_asleep; });
    }
    const Duration pause = next - system_clock().now();
    if (pause > Duration::zero() && !is_ending) {
      work.wait_for(mutex, pause, [this]() SL_REQUIRES(mutex) { return is_ending || is_hurried; });
    }
    if (held.empty() && is_ending) return false;
    is_writing = true;
    batch.text.swap(held);
    // Lines were dropped only while the buffer was full, so all lines in it came before them.
    batch.told = options.dropped_line ? std::exchange(untold, 0) : 0;
    if (batch.told > 0) batch.text += options.dropped_line(batch.told);
    return true;
  }

  void write_out(const Batch& batch) {
    std::string_view text = batch.text;
    while (!text.empty() && !gives_up) {
      // A timeout, not an endless wait: the loop must see gives_up.
      if (!is_writable(options.fd, kEndCheckTime)) continue;
      const auto written = write_piece(options.fd, piece_of(text));
      if (!written) break;
      text.remove_prefix(*written);
    }
    if (text.empty()) return;
    // The report line itself is no caller's line and does not count.
    const std::uint64_t lost = lines_of(text) - (batch.told > 0 ? 1 : 0);
    dropped.fetch_add(lost, std::memory_order_relaxed);
    // The batch's report is lost too, so the next report repeats its number.
    const MutexLock lock(mutex);
    untold += batch.told + lost;
  }
};

LineWriter::LineWriter(Options options) : state_(std::make_shared<State>(std::move(options))) {
  // The process's signals are for other threads, also while the log writes before they block
  // signals. With SIGPIPE blocked, a closed pipe is an error of the write and does not end the
  // process.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread thread([state = state_] {
      pthread_setname_np(pthread_self(), state->options.thread_name.c_str());
      state->run();
    });
    // Never joined. If another process fills a shared pipe between poll and write, this write
    // blocks until a reader comes. A join would block the end of the process as long.
    thread.detach();
  } catch (const std::system_error& error) {
    end_without_thread(state_->options.fd, state_->options.thread_name, error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineWriter::~LineWriter() {
  const MutexLock lock(state_->mutex);
  state_->is_ending = true;
  state_->is_asleep = false;
  state_->work.notify_one();
  const auto has_ended = [this]() SL_REQUIRES(state_->mutex) { return state_->has_ended; };
  if (state_->done.wait_for(state_->mutex, kLastLinesTime, has_ended)) return;
  state_->gives_up = true;
  // The thread sees gives_up at its next check.
  state_->done.wait_for(state_->mutex, 2 * kEndCheckTime, has_ended);
}

void LineWriter::write(std::string_view lines) { state_->write(lines); }
bool LineWriter::flush(Duration time_max) { return state_->flush(time_max); }
std::uint64_t LineWriter::dropped_total() const {
  return state_->dropped.load(std::memory_order_relaxed);
}

void end_without_thread(int fd, std::string_view thread, std::string_view why) {
  write_last_words(
      fd,
      "the thread " + std::string(thread) + " cannot be started: " + std::string(why) +
          ". Raise the limit of processes and threads (ulimit -u, or pids.max of the cgroup)\n");
  std::_Exit(EXIT_FAILURE);
}

void write_last_words(int fd, std::string_view text) {
  const Instant deadline = system_clock().now() + kLastLinesTime;
  while (!text.empty() && system_clock().now() < deadline) {
    if (!is_writable(fd, kEndCheckTime)) continue;
    const auto written = write_piece(fd, piece_of(text));
    if (!written) return;
    text.remove_prefix(*written);
  }
}

}  // namespace sightline
