// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/client/api_client.h"

#include <iterator>
#include <utility>

namespace sightline::client {

Answer<List> list_all(ApiClient& api, const object::Resource& resource, ListOptions options) {
  List all;
  for (;;) {
    auto page = api.list(resource, options);
    const bool is_late_page = !options.continue_from.empty();
    // The server forgets a continue token after some minutes. A list in one piece needs no token.
    if (is_late_page && failed(page, Reason::Expired)) {
      options.limit = 0;
      options.continue_from.clear();
      options.resource_version.clear();
      return api.list(resource, options);
    }
    List part = SL_TRY(std::move(page));
    all.items.insert(all.items.end(), std::make_move_iterator(part.items.begin()),
                     std::make_move_iterator(part.items.end()));
    all.resource_version = std::move(part.resource_version);
    if (part.continue_from.empty()) return all;
    options.continue_from = std::move(part.continue_from);
    options.resource_version.clear();  // the token contains it
  }
}

}  // namespace sightline::client
