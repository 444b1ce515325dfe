// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// The settings of frontends, routers and agents.
namespace sightline::desired {

// A worker in a router's form: the fields of `--worker`.
using WorkerFields = std::map<std::string, std::string>;
// Sorts by name, and keeps the first of equal names. Two pools may find one pod, and an endpoint
// may have a pod's name, but programs refuse a list with a repeated name.
std::vector<WorkerFields> by_name_once(std::vector<WorkerFields> workers);

// The environment that all programs of a revision share, SIGHTLINE_* by name: what identifies
// blocks, and who belongs together. An immutable ConfigMap holds it, so a restarted pod never gets
// settings of another revision. It depends only on the agreement and the owner. A change of
// this function must change the version of agreements too.
std::map<std::string, std::string> revision_environment(const RenderInput& input);
// The address of NATS and the credentials for it. Part of the container, because it may change
// within a revision.
std::map<std::string, std::string> nats_environment(const RenderInput& input);

// The settings that running routers and frontends accept (PUT /v1/settings), by their dotted names.
// The values are text.
std::map<std::string, std::string> live_settings(const RenderInput& input);

// The content of the ConfigMap NAME-REVISION-live: configuration files in JSON, which is also YAML,
// and the log level of agents, which they read at start.
inline constexpr std::string_view kFrontendFile = "frontend.yaml";
inline constexpr std::string_view kRouterFile = "router.yaml";
inline constexpr std::string_view kLogLevelKey = "log-level";
// The most workers of a file. Programs refuse files of more than 10,000 values, and a start without
// workers is better than no start.
inline constexpr std::size_t kFileWorkersMax = 1'200;
// The file of routers: the live settings and the latest workers, for a start without the operator.
// If there are more workers than a file may have, it has no workers: they are pushed.
std::string router_file(const RenderInput& input, const std::vector<WorkerFields>& workers);
// The file of frontends: the settings that they use. They refuse a file that names workers.
std::string frontend_file(const RenderInput& input);
// A file with only workers, for agents: the first ones, as many as a file may have.
std::string workers_file(const std::vector<WorkerFields>& workers);

// The names of the ConfigMaps below.
std::string revision_config_name(const RenderInput& input);
std::string live_config_name(const RenderInput& input);

std::string template_config_name(const RenderInput& input);

// The ConfigMaps NAME-REVISION (immutable), NAME-REVISION-template (immutable: the chat template
// when the revision was made) and NAME-REVISION-live.
object::Value revision_config_map(const RenderInput& input);
object::Value template_config_map(const RenderInput& input);
object::Value live_config_map(const RenderInput& input, const std::vector<WorkerFields>& workers);

}  // namespace sightline::desired
