// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/terminal.h"

#include <chrono>
#include <cstdio>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sightline::cli {
namespace {

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

bool write_out(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

}  // namespace

Terminal::Terminal() : is_live_(isatty(STDOUT_FILENO) == 1) {
  if (!is_live_) return;
  reads_keys_ = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (reads_keys_) {
    termios raw = before_;
    // ISIG is off too: Ctrl-C is a key, and the caller ends with a restored terminal.
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_out(kEnter);
}

Terminal::~Terminal() {
  if (!is_live_) return;
  write_out(kLeave);
  if (reads_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

top::Screen Terminal::size() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  if (!is_known || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool Terminal::draw(const std::vector<std::string>& lines) const {
  std::string text = is_live_ ? "\x1b[H" : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // The last row has no line end, which would scroll the screen by one row.
    const bool is_last = i + 1 == lines.size();
    text += lines[i] + (is_live_ ? "\x1b[K" : "") + (is_last && is_live_ ? "" : "\n");
  }
  if (is_live_) text += "\x1b[J";
  return write_out(text);
}

char Terminal::wait_for_key(Duration time) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  pollfd watched{reads_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
  if (poll(&watched, 1, static_cast<int>(ms)) <= 0) return 0;
  char key = 0;
  return read(STDIN_FILENO, &key, 1) == 1 ? key : '\0';
}

}  // namespace sightline::cli
