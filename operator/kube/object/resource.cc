// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/object/resource.h"

namespace sightline::object {
namespace {

// The unreserved characters of RFC 3986, section 2.3.
bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string text_of(const Key& key) {
  return key.name_space.empty() ? key.name : key.name_space + "/" + key.name;
}

std::string api_version_of(const Resource& resource) {
  return resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
}

std::string collection_path_of(const Resource& resource, std::string_view name_space) {
  // The core group has a path of its own.
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version;
  if (resource.is_namespaced && !name_space.empty()) {
    path += "/namespaces/" + percent_encoded(name_space);
  }
  return path + "/" + resource.plural;
}

std::string path_of(const Resource& resource, const Key& key, std::string_view subresource) {
  std::string path = collection_path_of(resource, key.name_space) + "/" + percent_encoded(key.name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

}  // namespace sightline::object
