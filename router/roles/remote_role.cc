// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/remote_role.h"

#include <utility>
#include <vector>

#include "common/contract/names.h"
#include "common/runtime/token_file.h"

#include "router/front/remote_selector/remote_selector.h"

namespace sightline::roles {

// The selector refers to the tokens, so these are declared first.
struct RemoteRole::Parts {
  Parts(std::unique_ptr<runtime::TokenFile> file, remote_selector::RemoteSelector::Options options,
        const http::ClientOptions& connections, const Deps& deps)
      : tokens(std::move(file)),
        selector(std::move(options),
                 {deps.pool, deps.names, tokens.get(), deps.metrics, system_clock(), connections}) {
  }

  std::unique_ptr<runtime::TokenFile> tokens;
  remote_selector::RemoteSelector selector;
};

RemoteRole::RemoteRole(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RemoteRole::~RemoteRole() = default;

Result<std::unique_ptr<RemoteRole>> RemoteRole::create(const Options& options, const Deps& deps) {
  const contract::SelectionSettings& settings = options.settings;
  std::unique_ptr<runtime::TokenFile> tokens;
  if (!settings.token_file.empty()) {
    auto opened = runtime::TokenFile::open(settings.token_file, system_clock());
    if (!opened.ok()) return with_context(std::move(opened).error(), "--selection-token-file");
    tokens = std::move(*opened);
  }
  remote_selector::RemoteSelector::Options asked{.routers = {},
                                                 .instance = options.instance,
                                                 .identity = options.identity,
                                                 .poll_interval = settings.poll_interval,
                                                 .renew_interval = settings.renew_interval};
  for (const auto& router : SL_TRY(contract::router_addresses(settings.routers))) {
    asked.routers.push_back({router.host, router.port});
  }
  // The selector keeps its connections in its own way. The plan only limits their number.
  http::ClientOptions connections = remote_selector::RemoteSelector::kept_connections();
  connections.idle_per_thread_max = options.open_files.idle_per_thread_max;
  connections.descriptor_max = options.open_files.descriptor_max;
  return std::make_unique<RemoteRole>(
      std::make_unique<Parts>(std::move(tokens), std::move(asked), connections, deps));
}

void RemoteRole::start() { parts_->selector.start(); }

void RemoteRole::add_admin(admin_port::AdminServer& admin) {
  admin.add_check("routers", [parts = parts_.get()] { return parts->selector.check(); });
  // A frontend alone has no workers. The answer says where to ask instead.
  for (const auto path : {contract::kWorkersPath, contract::kIndexPath}) {
    admin.add_route("GET", std::string(path), [](const admin_port::AdminRequest&) {
      return admin_port::admin_error(404,
                                     "this process has only the frontend role and no workers. "
                                     "Use the admin port of one of its routers");
    });
  }
}

void RemoteRole::refresh_metrics() { parts_->selector.refresh_metrics(); }
void RemoteRole::stop() { parts_->selector.stop(); }

selection::Selector& RemoteRole::selector() { return parts_->selector; }

std::shared_ptr<const fleet::Served> RemoteRole::served() const {
  return parts_->selector.served();
}

}  // namespace sightline::roles
