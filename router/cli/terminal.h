// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <termios.h>

#include "common/base/clock.h"

#include "router/top/frame.h"

namespace sightline::cli {

// Standard output as a screen that is drawn over again, and the keys that are pressed meanwhile.
// Where standard output is no terminal, frames follow each other as plain lines.
// Thread safety: from one thread.
class Terminal {
 public:
  // A terminal shows another screen and hands over keys at once, until the object is destroyed:
  // then it is as it was.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] bool is_live() const { return is_live_; }
  // As large as it is now; 80 x 24 where it is no terminal.
  [[nodiscard]] static top::Screen size();
  // False: nobody reads any more.
  bool draw(const std::vector<std::string>& lines) const;
  // The next key, in so much time; 0: none. Does not wait for keys of what is no terminal.
  [[nodiscard]] char wait_for_key(Duration time) const;

 private:
  bool is_live_ = false;  // standard output is a terminal
  bool reads_keys_ = false;
  termios before_{};
};

}  // namespace sightline::cli
