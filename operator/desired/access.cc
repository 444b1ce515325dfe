// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/access.h"

#include <array>
#include <utility>

namespace sightline::desired {

using object::Value;

namespace {

constexpr std::array kComponents = {kFrontend, kRouterComponent, kWorker, kAgent, kNats};

}  // namespace

std::string service_account(const Owner& owner, std::string_view component) {
  return shared_name(owner, component);
}

std::vector<Value> service_accounts(const RenderInput& input) {
  std::vector<Value> accounts;
  for (const std::string_view component : kComponents) {
    Value account = object_of(input, {.api_version = "v1",
                                      .kind = "ServiceAccount",
                                      .name = service_account(input.owner, component),
                                      .labels = labels(input.owner, component, {})});
    // No program of these pods calls the API server.
    account.member("automountServiceAccountToken") = false;
    accounts.push_back(std::move(account));
  }
  return accounts;
}

}  // namespace sightline::desired
