// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/cache/events/event_feed.h"

namespace sightline::subscriber {

// Writes what has changed in what is known of a rank, as far as somebody should hear of it.
void log_changes(const events::FeedStatus& before, const events::FeedStatus& now);

// Another health, another block size, or other blocks that are known to be missing.
bool is_news(const events::FeedStatus& before, const events::FeedStatus& now);

}  // namespace sightline::subscriber
