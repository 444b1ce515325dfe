// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// The frontends and routers of a revision, and their Services.
namespace sightline::desired {

// The Deployment of frontends. Without `replicas` an autoscaler sets their number. Then the
// container requests CPU, one core by default, because the autoscaler measures load in parts of
// this request.
object::Value frontend_deployment(const RenderInput& input, std::optional<std::int64_t> replicas);
object::Value router_deployment(const RenderInput& input, std::int64_t replicas);

// The headless Service of a revision's routers: its name resolves to each ready router.
object::Value router_service(const RenderInput& input);
// The Service for clients, before the frontends of all revisions. A frontend is ready when a router
// of its revision is, and that router has workers. So each revision gets the clients that it can
// serve.
object::Value client_service(const RenderInput& input);

// A port of a Service, for pods' port of the same name.
object::Value service_port(std::string_view name, std::int64_t port);

}  // namespace sightline::desired
