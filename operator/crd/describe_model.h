// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <concepts>
#include <type_traits>

#include "operator/crd/model_spec.h"

// The fields of the model and of what identifies its blocks, see describe.h.
namespace sightline::crd {

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, SecretRef>
void describe(Fields& fields, Value& v) {
  fields("name", v.name);
  fields("key", v.key);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ConfigMapRef>
void describe(Fields& fields, Value& v) {
  fields("configMap", v.config_map);
  fields("key", v.key);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, PvcSource>
void describe(Fields& fields, Value& v) {
  fields("claimName", v.claim_name);
  fields("path", v.path);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ImageSource>
void describe(Fields& fields, Value& v) {
  fields("reference", v.reference);
  fields("path", v.path);
  fields("pullPolicy", v.pull_policy);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ModelSource>
void describe(Fields& fields, Value& v) {
  fields("uri", v.uri);
  fields("pvc", v.pvc);
  fields("image", v.image);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Model>
void describe(Fields& fields, Value& v) {
  fields("name", v.name);
  fields("source", v.source);
  fields("revision", v.revision);
  fields("tokenSecret", v.token_secret);
  fields("maxModelLen", v.max_model_len);
  fields("chatTemplate", v.chat_template);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Kv>
void describe(Fields& fields, Value& v) {
  fields("blockSize", v.block_size);
  fields("hashSeed", v.hash_seed);
  fields("events", v.events);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Fetch>
void describe(Fields& fields, Value& v) {
  fields("allowPrivateAddresses", v.allow_private_addresses);
  fields("connectTimeout", v.connect_timeout);
  fields("timeout", v.timeout);
  fields("redirectsMax", v.redirects_max);
  fields("downloadsMax", v.downloads_max);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Multimodal>
void describe(Fields& fields, Value& v) {
  fields("modalities", v.modalities);
  fields("processor", v.processor);
  fields("imagesMax", v.images_max);
  fields("imageBytesMax", v.image_bytes_max);
  fields("fetch", v.fetch);
  fields("forward", v.forward);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ShmTransfer>
void describe(Fields& fields, Value& v) {
  fields("size", v.size);
  fields("onMiss", v.on_miss);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, NixlTransfer>
void describe(Fields& fields, Value& v) { fields("backend", v.backend); }

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Transfer>
void describe(Fields& fields, Value& v) {
  fields("mode", v.mode);
  fields("shm", v.shm);
  fields("nixl", v.nixl);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Resources>
void describe(Fields& fields, Value& v) {
  fields("requests", v.requests);
  fields("limits", v.limits);
}

}  // namespace sightline::crd
