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

// How to reach the API server, and which objects to watch.
struct KubeSettings {
  // Files, as in KUBECONFIG. Empty: the pod's service account.
  std::string kubeconfig;
  // Empty: the current context.
  std::string context;
  // The namespaces whose objects are watched. Empty: all namespaces.
  std::vector<std::string> name_spaces;
  // 0: as many as the API server accepts.
  double requests_per_second = 0;
};

// How several operators choose the one that acts.
struct ElectionSettings {
  bool is_on = true;
  // The namespace of the Lease. Empty: that of the pod or context.
  std::string name_space;
  std::string lease = "sightline-operator";
  milliseconds lease_duration{15'000};
  milliseconds renew_deadline{10'000};
  milliseconds retry_period{2'000};
};

// The images to render if an object names no image.
struct ImageSettings {
  std::string router;
  std::string nats;
  std::string download;
};

// How objects are reconciled.
struct ReconcileSettings {
  // How many objects at the same time.
  std::uint32_t workers = 4;
  // How often the routers of an object are polled.
  milliseconds poll_interval{5'000};
};

// All settings of `sightline-operator`.
struct OperatorSettings {
  contract::AdminSettings admin;
  KubeSettings kube;
  ElectionSettings election;
  ImageSettings images;
  ReconcileSettings reconcile;
  contract::LogSettings log;

  OperatorSettings();
};

// The settings of `sightline-operator check`.
struct CheckSettings {
  KubeSettings kube;
  ElectionSettings election;
  // How long the installation has to become healthy.
  milliseconds time_max{60'000};
  contract::LogSettings log;
};

// The tables of all settings, bound to `settings`, which must outlive them.
contract::SettingTable check_table(CheckSettings& settings);

contract::SettingTable operator_table(OperatorSettings& settings);

}  // namespace sightline::manager
