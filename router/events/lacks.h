// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

namespace sightline::events {

// Why the index may lack blocks that an engine holds. All false: it has every block the engine
// announced since its cache was last empty.
struct Lacks {
  bool forgotten = true;         // joined late, events lost, or a parent never announced
  bool unknown_content = false;  // blocks that cannot be named exactly
  bool no_room = false;          // more blocks than are remembered
};

}  // namespace sightline::events
