// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// The frontends and routers of a revision, and how they are reached.
namespace sightline::desired {

// Without a number of pods it belongs to who scales them; then the container has a request for CPU,
// of one core where the spec gives none, since the load is counted in parts of it.
object::Value frontend_deployment(const Scene& scene, std::optional<std::int64_t> replicas);
object::Value router_deployment(const Scene& scene, std::int64_t replicas);

// The Service of a revision's routers, without an address of its own: its name stands for each of
// them that is ready.
object::Value router_service(const Scene& scene);
// The Service that clients use, before the frontends of all revisions. A frontend is ready once a
// router of its revision is, with workers: so each revision has the clients it can serve.
object::Value client_service(const Scene& scene);

// A port of a Service, of pods' port of the same name.
object::Value service_port(std::string_view name, std::int64_t port);

}  // namespace sightline::desired
