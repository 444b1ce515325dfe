// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/cache/events/event_feed.h"

namespace sightline::subscriber {

// Logs the changes of a rank's status that an operator should know about.
void log_changes(const events::FeedStatus& before, const events::FeedStatus& now);

// Returns whether the health, the block size, or the blocks known to be missing have changed.
bool is_news(const events::FeedStatus& before, const events::FeedStatus& now);

}  // namespace sightline::subscriber
