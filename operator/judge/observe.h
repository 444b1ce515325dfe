// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "operator/judge/world.h"
#include "operator/kube/object/value.h"

// Reads what the World is made of. Pure; what is missing or of another kind is as if it were not
// said.
namespace sightline::judge {

Pod pod_of(const object::Value& pod);
Deployment deployment_of(const object::Value& deployment);

// The answers of a router's admin port, parsed: GET /v1/workers, /v1/workers/list, /v1/settings,
// /v1/replicas.
struct RouterAnswers {
  object::Value workers;
  object::Value list;
  object::Value settings;
  object::Value replicas;
};
// Those that were pushed, by name, of the answer to GET /v1/settings.
std::map<std::string, std::string> pushed_settings(const object::Value& settings);
RouterReport report_of(const Pod& router, const RouterAnswers& answers);
RouterReport unreached(const Pod& router, std::string problem);

}  // namespace sightline::judge
