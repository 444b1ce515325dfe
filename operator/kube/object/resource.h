// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "operator/kube/object/value.h"

namespace sightline::object {

// A kind of objects, and where the API server keeps them.
struct Resource {
  // Empty: the core group.
  std::string group;
  std::string version;
  // For example "deployments".
  std::string plural;
  // For example "Deployment".
  std::string kind;
  bool is_namespaced = true;

  friend auto operator<=>(const Resource&, const Resource&) = default;
};

// Names one object of a resource. The namespace is empty for objects of the whole cluster.
struct Key {
  std::string name_space;
  std::string name;

  friend auto operator<=>(const Key&, const Key&) = default;
};

// "namespace/name", or only the name.
[[nodiscard]] std::string text_of(const Key& key);

// The apiVersion of its objects, for example "apps/v1" or "v1".
[[nodiscard]] std::string api_version_of(const Resource& resource);

// The path of a collection, for example "/apis/apps/v1/namespaces/a/deployments". Without a
// namespace: of all namespaces. Percent-encoded.
[[nodiscard]] std::string collection_path_of(const Resource& resource, std::string_view name_space);
// The path of one object, and of its subresource ("status") if given.
[[nodiscard]] std::string path_of(const Resource& resource, const Key& key,
                                  std::string_view subresource = {});

// The text as a path segment or as the value of a query.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace sightline::object
