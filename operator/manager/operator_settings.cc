// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/operator_settings.h"

namespace sightline::manager {
namespace {

using contract::SettingTable;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

// The usual port of operators: metrics, health and readiness are on one port.
constexpr std::uint16_t kOperatorPort = 8080;

void add_kube(SettingTable& table, KubeSettings& s) {
  table.add_text(
      {"kube.config", "kubeconfig", "FILES",
       "Kubeconfig files, separated by colons. Empty: KUBECONFIG, else the pod's service "
       "account, else ~/.kube/config."},
      s.kubeconfig);
  table.add_text({"kube.context", "context", "NAME",
                  "Context of the kubeconfig files. Empty: their current context."},
                 s.context);
  table.add_text_list({"kube.namespace", "watch-namespace", "NAME",
                       "Namespace to watch. Repeatable. The operator then needs rights in these "
                       "namespaces only. Not given: all namespaces."},
                      s.name_spaces);
}

void add_pace(SettingTable& table, KubeSettings& s) {
  table.add_number({"kube.requests_per_second", "requests-per-second", "N",
                    "Largest number of requests a second to the API server. 0: no limit."},
                   s.requests_per_second, {0, 10'000});
}

void add_lease(SettingTable& table, ElectionSettings& s) {
  table.add_switch(
      {"election.on", "leader-elect", "",
       "Leader election: several operators may run, and only the holder of a Lease acts."},
      s.is_on);
  table.add_text({"election.namespace", "lease-namespace", "NAME",
                  "Namespace of the Lease. Empty: the operator's own."},
                 s.name_space);
  table.add_text({"election.lease", "lease-name", "NAME", "Name of the Lease."}, s.lease);
}

void add_election(SettingTable& table, ElectionSettings& s) {
  add_lease(table, s);
  table.add_duration(
      {"election.lease_duration", "lease-duration", "TIME",
       "How long a Lease is valid after its last renewal. Then another operator may take it."},
      s.lease_duration, {1s, 1h});
  table.add_duration({"election.renew_deadline", "renew-deadline", "TIME",
                      "A leader that cannot renew its Lease for this long ends."},
                     s.renew_deadline, {500ms, 1h});
  table.add_duration({"election.retry_period", "retry-period", "TIME",
                      "Time between two attempts to take or renew the Lease."},
                     s.retry_period, {50ms, 1h});
}

void add_images(SettingTable& table, ImageSettings& s) {
  table.add_text({"images.router", "router-image", "IMAGE",
                  "Image of frontends, routers, agents and simulators, for objects without "
                  "spec.image. The operator records it for an object at first sight. A later image "
                  "replaces it once spec.version is the version of the operator."},
                 s.router);
  table.add_text({"images.nats", "nats-image", "IMAGE",
                  "Image of managed NATS servers, recorded like --router-image."},
                 s.nats);
  table.add_text(
      {"images.download", "download-image", "IMAGE",
       "Image of the init container that downloads models, recorded like --router-image."},
      s.download);
}

void add_reconcile(SettingTable& table, ReconcileSettings& s) {
  table.add_integer<std::uint32_t>({"reconcile.workers", "concurrent-reconciles", "N",
                                    "Objects that the operator reconciles at the same time."},
                                   s.workers, {1, 64});
  table.add_duration(
      {"reconcile.poll_interval", "poll-interval", "TIME",
       "Time between two reconciliations of an object, each of which queries its routers."},
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
  table.add_duration(
      {"check.timeout", "timeout", "TIME", "How long to wait until all checks succeed."},
      settings.time_max, {1s, 1h});
  add_log(table, settings.log);
  return table;
}

}  // namespace sightline::manager
