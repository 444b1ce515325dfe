// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/rest/line_splitter.h"

namespace sightline::rest {

void LineSplitter::add(std::string_view bytes) {
  // Drops the returned lines once for each piece. next() would move the rest once for each line.
  held_.erase(0, at_);
  searched_ -= at_;
  at_ = 0;
  held_ += bytes;
}

std::optional<std::string> LineSplitter::next() {
  while (!is_too_long()) {
    const std::size_t end = held_.find('\n', searched_);
    if (end == std::string::npos) {
      // The next call does not search these bytes again.
      searched_ = held_.size();
      return std::nullopt;
    }
    std::string line = held_.substr(at_, end - at_);
    at_ = end + 1;
    searched_ = at_;
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

bool LineSplitter::is_too_long() const { return searched_ - at_ > line_bytes_max_; }

}  // namespace sightline::rest
