// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/process_settings.h"
#include "common/contract/setting_table.h"

namespace sightline::manager {

using std::chrono::milliseconds;

struct KubeSettings {
  std::string kubeconfig;                // files, as in KUBECONFIG; empty: a pod's service account
  std::string context;                   // empty: the current one
  std::vector<std::string> name_spaces;  // whose objects are watched; none: all
  double requests_per_second = 0;        // 0: as many as the API server takes
};

// How the one that acts is chosen among several operators.
struct ElectionSettings {
  bool is_on = true;
  std::string name_space;  // of the Lease; empty: that of the pod or context
  std::string lease = "sightline-operator";
  milliseconds lease_duration{15'000};
  milliseconds renew_deadline{10'000};
  milliseconds retry_period{2'000};
};

// What is rendered where an object names no image.
struct ImageSettings {
  std::string router;
  std::string nats;
  std::string download;
};

struct ReconcileSettings {
  std::uint32_t workers = 4;          // objects at the same time
  milliseconds poll_interval{5'000};  // routers of an object are asked so often
};

struct OperatorSettings {
  contract::AdminSettings admin;
  KubeSettings kube;
  ElectionSettings election;
  ImageSettings images;
  ReconcileSettings reconcile;
  contract::LogSettings log;

  OperatorSettings();
};

// Of the check of an installation.
struct CheckSettings {
  KubeSettings kube;
  ElectionSettings election;
  milliseconds time_max{60'000};  // for all to be well
  contract::LogSettings log;
};

contract::SettingTable check_table(CheckSettings& settings);

// The table of all settings, bound to `settings`, which must outlive it.
contract::SettingTable operator_table(OperatorSettings& settings);

}  // namespace sightline::manager
