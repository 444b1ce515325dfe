// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "router/prompt/media/remote_url.h"

namespace sightline::media {

// Decides which URLs are fetched through a proxy. It follows the rules by which curl, Python's
// requests and Go read the environment. Pure.
struct ProxyRules {
  // URL of the proxy for http URLs, or empty for no proxy.
  std::string http;
  // The same for https URLs.
  std::string https;
  // The hosts that need no proxy, in lower case. An entry is "*", a name, an IP address or a range
  // of addresses ("10.0.0.0/8"). A name includes all names below it. An entry other than a range
  // may end with a port, and then holds for this port only.
  std::vector<std::string> exempt;

  // Returns the proxy's URL, or an empty text if the host is requested directly. The result is a
  // view into these rules.
  [[nodiscard]] std::string_view proxy_for(const RemoteUrl& url) const;
};

// Reads http_proxy, https_proxy, all_proxy and no_proxy. The names in small letters have priority
// over those in capital letters. `get` returns the value of a variable, and "" if it is not set.
ProxyRules proxies_of_environment(const std::function<std::string(const char* name)>& get);

}  // namespace sightline::media
