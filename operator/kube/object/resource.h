// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "operator/kube/object/value.h"

namespace sightline::object {

// A kind of objects of the API server, and where it keeps them.
struct Resource {
  std::string group;  // empty: the core group
  std::string version;
  std::string plural;  // "deployments"
  std::string kind;    // "Deployment"
  bool is_namespaced = true;

  friend auto operator<=>(const Resource&, const Resource&) = default;
};

// Names one object of a resource. The namespace is empty for objects of the whole cluster.
struct Key {
  std::string name_space;
  std::string name;

  friend auto operator<=>(const Key&, const Key&) = default;
};

// "namespace/name", or the name alone.
[[nodiscard]] std::string text_of(const Key& key);

// "apps/v1", "v1": the apiVersion of its objects.
[[nodiscard]] std::string api_version_of(const Resource& resource);

// "/apis/apps/v1/namespaces/a/deployments"; without a namespace, those of all. Percent-encoded.
[[nodiscard]] std::string collection_path_of(const Resource& resource, std::string_view name_space);
// The same with the object's name, and with a subresource ("status") unless that is empty.
[[nodiscard]] std::string path_of(const Resource& resource, const Key& key,
                                  std::string_view subresource = {});

// Text as it stands in a path segment or in the value of a query.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace sightline::object
