// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/settings.h"

namespace sightline::manager {
namespace {

using contract::SettingTable;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

// The usual port of operators: metrics, health and readiness are on one port.
constexpr std::uint16_t kOperatorPort = 8080;

void add_kube(SettingTable& table, KubeSettings& s) {
  table.add_text({"kube.config", "kubeconfig", "FILES",
                  "Kubeconfig files with colons between. Empty: KUBECONFIG, else the pod's service "
                  "account, else ~/.kube/config."},
                 s.kubeconfig);
  table.add_text({"kube.context", "context", "NAME",
                  "Context of the kubeconfig files. Empty: their current one."},
                 s.context);
  table.add_text_list({"kube.namespace", "watch-namespace", "NAME",
                       "Only objects of this namespace are looked after, and rights in it are "
                       "enough; repeatable. None: those of all namespaces."},
                      s.name_spaces);
}

void add_pace(SettingTable& table, KubeSettings& s) {
  table.add_number({"kube.requests_per_second", "requests-per-second", "N",
                    "Requests to the API server, at most. 0: as many as it takes."},
                   s.requests_per_second, {0, 10'000});
}

void add_lease(SettingTable& table, ElectionSettings& s) {
  table.add_switch({"election.on", "leader-elect", "",
                    "Several operators may run, of which one acts: the holder of a Lease."},
                   s.is_on);
  table.add_text({"election.namespace", "lease-namespace", "NAME",
                  "Namespace of the Lease. Empty: the operator's own."},
                 s.name_space);
  table.add_text({"election.lease", "lease-name", "NAME", "Name of the Lease."}, s.lease);
}

void add_election(SettingTable& table, ElectionSettings& s) {
  add_lease(table, s);
  table.add_duration({"election.lease_duration", "lease-duration", "TIME",
                      "How long a silent leader's Lease counts."},
                     s.lease_duration, {1s, 1h});
  table.add_duration({"election.renew_deadline", "renew-deadline", "TIME",
                      "A leader that could not renew its Lease for so long ends."},
                     s.renew_deadline, {500ms, 1h});
  table.add_duration({"election.retry_period", "retry-period", "TIME",
                      "Between two attempts to take or renew the Lease."},
                     s.retry_period, {50ms, 1h});
}

void add_images(SettingTable& table, ImageSettings& s) {
  table.add_text({"images.router", "router-image", "IMAGE",
                  "Image of frontends, routers, agents and simulators, for objects without "
                  "spec.image. Noted on an object when it is first seen: another operator rolls "
                  "nothing until spec.version is changed."},
                 s.router);
  table.add_text({"images.nats", "nats-image", "IMAGE", "The same for managed NATS servers."},
                 s.nats);
  table.add_text({"images.download", "download-image", "IMAGE",
                  "The same for the init container that downloads models."},
                 s.download);
}

void add_reconcile(SettingTable& table, ReconcileSettings& s) {
  table.add_integer<std::uint32_t>({"reconcile.workers", "concurrent-reconciles", "N",
                                    "Objects that are looked after at the same time."},
                                   s.workers, {1, 64});
  table.add_duration({"reconcile.poll_interval", "poll-interval", "TIME",
                      "How often the routers of an object are asked what is true."},
                     s.poll_interval, {100ms, 1h});
}

}  // namespace

OperatorSettings::OperatorSettings() {
  admin.host = "::";
  admin.port = kOperatorPort;
}

SettingTable operator_table(OperatorSettings& settings) {
  SettingTable table;
  add_admin(table, settings.admin);
  add_kube(table, settings.kube);
  add_pace(table, settings.kube);
  add_election(table, settings.election);
  add_images(table, settings.images);
  add_reconcile(table, settings.reconcile);
  add_log(table, settings.log);
  return table;
}

SettingTable check_table(CheckSettings& settings) {
  SettingTable table;
  add_kube(table, settings.kube);
  add_lease(table, settings.election);
  table.add_duration({"check.timeout", "timeout", "TIME", "How long to wait for all to be well."},
                     settings.time_max, {1s, 1h});
  add_log(table, settings.log);
  return table;
}

}  // namespace sightline::manager
