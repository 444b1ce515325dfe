// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/audit/audit.h"
#include "router/index/prefix_index.h"
#include "router/subscriber/zmq_subscriber.h"

namespace sightline::cli {

// Joins the audit to the events and the index. All outlive it.
audit::Surroundings audit_surroundings(subscriber::EventSubscriber& subscriber,
                                       const index::PrefixIndex& index,
                                       const index::RemovalJournal& journal);

}  // namespace sightline::cli
