// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/line_writer.h"

#include <array>
#include <csignal>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"

namespace sightline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPipeBytes = 4096;
constexpr seconds kPatience{20};

class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    EXPECT_GE(fcntl(ends_[1], F_SETPIPE_SZ, kPipeBytes), kPipeBytes);
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writer() const { return ends_[1]; }
  void close_reader() { shut(0); }
  void close_writer() { shut(1); }
  bool is_full() const {
    pollfd polled{.fd = ends_[1], .events = POLLOUT, .revents = 0};
    return poll(&polled, 1, 0) == 0;
  }
  // The bytes that arrive within the time, at most bytes_max.
  std::string read_some(milliseconds time, std::size_t bytes_max = 65536) const {
    pollfd polled{.fd = ends_[0], .events = POLLIN, .revents = 0};
    if (poll(&polled, 1, static_cast<int>(time.count())) <= 0) return {};
    std::string text(bytes_max, '\0');
    const auto size = read(ends_[0], text.data(), text.size());
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }
  // Everything up to this text.
  std::string read_until(std::string_view end) const {
    std::string text;
    while (text.find(end) == std::string::npos) {
      const std::string more = read_some(kPatience);
      if (more.empty()) return text;
      text += more;
    }
    return text;
  }

 private:
  void shut(std::size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

LineWriter::Options options(const Pipe& pipe, std::size_t held_bytes_max = 1 << 20) {
  return {.fd = pipe.writer(),
          .thread_name = "lines",
          .held_bytes_max = held_bytes_max,
          .dropped_line = [](std::uint64_t n) { return std::to_string(n) + " dropped\n"; }};
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(LineWriter, WritesLinesOfAllThreadsWholeAndInOrder) {
  constexpr int kThreads = 4;
  constexpr int kLines = 500;
  const Pipe pipe;
  LineWriter writer(options(pipe));
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&writer, t] {
      for (int i = 0; i < kLines; ++i) {
        writer.write("<" + std::to_string(t) + ":" + std::to_string(i) + ">\n");
      }
    });
  }
  std::string text;
  while (count_of(text, "\n") < kThreads * kLines) {
    const std::string more = pipe.read_some(kPatience);
    ASSERT_FALSE(more.empty());
    text += more;
  }
  for (int t = 0; t < kThreads; ++t) {
    std::size_t at = 0;
    for (int i = 0; i < kLines; ++i) {
      at = text.find("<" + std::to_string(t) + ":" + std::to_string(i) + ">\n", at);
      ASSERT_NE(at, std::string::npos);
    }
  }
  EXPECT_EQ(writer.dropped_total(), 0U);
}

// The sum of all numbers in the lines "N dropped".
std::uint64_t told_in(const std::string& text) {
  std::uint64_t sum = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" dropped")) sum += std::stoull(line);
  }
  return sum;
}

TEST(LineWriter, DropsAndReportsLinesWithoutWaitingForAReader) {
  constexpr std::size_t kLines = 10'000;
  const std::string line(99, 'x');
  const Pipe pipe;
  LineWriter writer(options(pipe, 100'000));
  for (std::size_t i = 0; i < kLines; ++i) writer.write(line + "\n");
  const std::uint64_t dropped = writer.dropped_total();
  EXPECT_GE(dropped, kLines - 3'000);
  EXPECT_LT(dropped, kLines);
  // The reader continues. Lines may have been dropped before and after the first batch was taken.
  std::string text;
  const auto misses = [&] {
    return told_in(text) < dropped || count_of(text, line + "\n") < kLines - dropped;
  };
  while (misses()) {
    const std::string more = pipe.read_until("\n");
    ASSERT_FALSE(more.empty());
    text += more;
  }
  EXPECT_EQ(told_in(text), dropped);
  EXPECT_LE(count_of(text, "dropped"), 2U);
  EXPECT_EQ(count_of(text, line + "\n"), kLines - dropped);
  writer.write("and on\n");
  EXPECT_EQ(pipe.read_until("and on\n"), "and on\n");
  EXPECT_EQ(writer.dropped_total(), dropped);
}

TEST(LineWriter, DropsAndCountsLinesToAClosedPipe) {
  Pipe pipe;
  LineWriter writer(options(pipe));
  pipe.close_reader();
  for (std::uint64_t round = 1; round <= 3; ++round) {
    writer.write("one\ntwo\n");
    EXPECT_TRUE(writer.flush(kPatience));
    EXPECT_EQ(writer.dropped_total(), 2 * round);
  }
}

TEST(LineWriter, EndsWithoutAReader) {
  const Pipe pipe;
  {
    LineWriter writer(options(pipe));
    for (int i = 0; i < 1'000; ++i) writer.write(std::string(99, 'x') + "\n");
    EXPECT_FALSE(writer.flush(milliseconds(1)));
  }
  EXPECT_TRUE(pipe.is_full());
}

TEST(LineWriter, WritesWhatItHoldsBeforeItEnds) {
  Pipe pipe;
  std::optional<LineWriter> writer(options(pipe));
  std::jthread ending([&] {
    for (int i = 0; i < 200; ++i) writer->write(std::string(99, 'x') + "\n");
    writer->write("last\n");
    writer.reset();
  });
  EXPECT_EQ(pipe.read_until("last\n").size(), 20'005U);
}

TEST(LineWriter, WritesALineThatIsLongerThanAPipe) {
  const Pipe pipe;
  LineWriter writer(options(pipe));
  const std::string line = std::string(3 * kPipeBytes, 'y') + "\n";
  writer.write(line);
  EXPECT_EQ(pipe.read_until("\n"), line);
}

TEST(LineWriter, LastWordsEndWithoutAReader) {
  Pipe pipe;
  const std::string much(3 * kPipeBytes, 'z');
  write_last_words(pipe.writer(), much);
  EXPECT_EQ(pipe.read_some(kPatience), much.substr(0, kPipeBytes));
  write_last_words(pipe.writer(), "words\n");
  EXPECT_EQ(pipe.read_some(kPatience), "words\n");
}

TEST(LogDeathTest, LinesBeforeAFailedCheckPrecedeItsMessage) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto fail = [] {
    for (int i = 0; i < 100; ++i) log(LogLevel::Warn, "line", {{"n", i}});
    SL_CHECK(1 + 1 == 3);
  };
  EXPECT_EXIT(fail(), testing::KilledBySignal(SIGABRT),
              "line n=0\n(.*\n)*.*line n=99\n.*line_writer_test.cc:[0-9]+: check failed: 1 \\+ 1");
}

TEST(LogDeathTest, ProcessEndWritesEarlierLines) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto end = [] {
    log(LogLevel::Error, "the last line");
    std::exit(3);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(3), "error the last line\n");
}

TEST(LogDeathTest, FailedCheckEndsTheProcessWithoutAReader) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto fail = [] {
    const Pipe unread;
    dup2(unread.writer(), STDERR_FILENO);
    for (int i = 0; i < 1'000; ++i) log(LogLevel::Warn, "line that nobody reads");
    SL_CHECK(false);
  };
  EXPECT_EXIT(fail(), testing::KilledBySignal(SIGABRT), "");
}

// For a user that has one process already. Root has no limit of processes.
TEST(LineWriterDeath, EndsTheProcessWithARemedyWithoutAThread) {
  const auto start = [] {
    const rlimit one{1, 1};
    constexpr uid_t kNobody = 65534;
    if (setrlimit(RLIMIT_NPROC, &one) != 0 || (geteuid() == 0 && setuid(kNobody) != 0)) _exit(2);
    const LineWriter writer({.fd = STDERR_FILENO, .thread_name = "sl-log", .dropped_line = {}});
    _exit(0);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(1),
              "the thread sl-log cannot be started: .*ulimit -u");
}

}  // namespace
}  // namespace sightline
