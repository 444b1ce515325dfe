// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "operator/crd/status.h"
#include "operator/judge/world.h"

// How many there are and how many there should be. Pure.
namespace sightline::judge {

// Pods of frontends or routers: those that are wanted of all revisions, and those that are ready.
crd::ReadyCount ready_of(const World& world, std::string_view component);

// Workers of all pools: those that the spec wants, and those of any revision that are routable.
crd::ReadyCount routable_of(const World& world);

// Whether a router sends requests to a worker, be it by load alone. Where none answers, whether a
// worker is routable.
bool has_answering_worker(const World& world);

// Whether the target serves with as many workers as somebody else lends to this older revision, or
// as it wants if these are fewer. Where the older one's routers do not answer, all count.
bool is_replaced(const World& world, const Stack& older);

// Replicas of a pool with a template, as the spec or who scales it wants.
std::int64_t wanted_of(const World& world, const crd::Pool& pool);

// "block size 16, transfer disabled, workers 2/2, routers 2": for events and the condition Ready.
std::string ready_text(const World& world);

}  // namespace sightline::judge
