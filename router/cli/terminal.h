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

// Draws frames on standard output and reads the keys that the user presses. If standard
// output is no terminal, frames follow each other as plain lines.
// Thread safety: one thread at a time.
class Terminal {
 public:
  // Switches a terminal to its alternate screen, and makes it send each key immediately. The
  // destructor restores the terminal.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Returns whether standard output is a terminal.
  [[nodiscard]] bool is_live() const { return is_live_; }
  // Returns the present size, or 80 x 24 if standard output is no terminal.
  [[nodiscard]] static top::Screen size();
  // Draws one frame. Returns false if no process reads the output.
  bool draw(const std::vector<std::string>& lines) const;
  // Waits for a key for so much time and returns it. 0: no key came. If standard input is no
  // terminal, it only waits.
  [[nodiscard]] char wait_for_key(Duration time) const;

 private:
  // Standard output is a terminal.
  bool is_live_ = false;
  // Standard input is a terminal, whose mode was changed.
  bool reads_keys_ = false;
  // The mode of standard input before the change.
  termios before_{};
};

}  // namespace sightline::cli
