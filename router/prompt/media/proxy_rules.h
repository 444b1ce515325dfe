// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "router/prompt/media/remote_url.h"

namespace sightline::media {

// Which URLs are fetched through a proxy, as curl, Python's requests and Go read the environment.
// Values. Pure.
struct ProxyRules {
  std::string http;   // URL of the proxy for http URLs; empty: none
  std::string https;  // the same for https URLs
  // Whom it is not for: "*", a name with all names below it, an IP address, a range of them
  // ("10.0.0.0/8"); each but the range with a port or for all ports. In lower case.
  std::vector<std::string> exempt;

  // The proxy's URL; empty: the host is asked directly.
  [[nodiscard]] std::string_view proxy_for(const RemoteUrl& url) const;
};

// As http_proxy, https_proxy, all_proxy and no_proxy say, in small or capital letters, the small
// ones first. `get` gives a variable, "" where it is not set.
ProxyRules proxies_of_environment(const std::function<std::string(const char* name)>& get);

}  // namespace sightline::media
