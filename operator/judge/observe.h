// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "operator/judge/cluster_state.h"
#include "operator/kube/object/value.h"

// Parses objects and answers into the values of a ClusterState. Pure. A missing field, or one of
// another kind, counts as not given.
namespace sightline::judge {

Pod pod_of(const object::Value& pod);
Deployment deployment_of(const object::Value& deployment);

// The parsed answers of a router's admin port: GET /v1/workers, /v1/workers/list, /v1/settings and
// /v1/replicas.
struct RouterAnswers {
  object::Value workers;
  object::Value list;
  object::Value settings;
  object::Value replicas;
};
// The pushed settings, by name, from the answer to GET /v1/settings.
std::map<std::string, std::string> pushed_settings(const object::Value& settings);
// What a router reports.
RouterReport report_of(const Pod& router, const RouterAnswers& answers);
// The report of a router that could not be asked.
RouterReport unreached(const Pod& router, std::string problem);

}  // namespace sightline::judge
