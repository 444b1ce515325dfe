// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/crd/enums.h"

// The model, and what identifies its blocks. Paths in comments are those of the CRD, see spec.h.
namespace sightline::crd {

// JSON, passed on unchanged. Empty: not given.
struct Opaque {
  std::string json;
  bool operator==(const Opaque&) const = default;
};

// A key of a Secret.
struct SecretRef {
  std::string name;
  std::string key;
  bool operator==(const SecretRef&) const = default;
};

// A key of a ConfigMap.
struct ConfigMapRef {
  std::string config_map;
  std::string key;
  bool operator==(const ConfigMapRef&) const = default;
};

// spec.model.source.pvc: a directory on a PersistentVolumeClaim.
struct PvcSource {
  std::string claim_name;
  std::string path;
  bool operator==(const PvcSource&) const = default;
};

// spec.model.source.image: a directory in a container image.
struct ImageSource {
  std::string reference;
  std::string path;
  PullPolicy pull_policy = PullPolicy::IfNotPresent;
  bool operator==(const ImageSource&) const = default;
};

// spec.model.source: one of the three.
struct ModelSource {
  std::optional<std::string> uri;
  std::optional<PvcSource> pvc;
  std::optional<ImageSource> image;
  bool operator==(const ModelSource&) const = default;
};

// spec.model.
struct Model {
  std::string name;
  std::optional<ModelSource> source;
  std::string revision;
  std::optional<SecretRef> token_secret;
  std::optional<std::int64_t> max_model_len;
  std::optional<ConfigMapRef> chat_template;
  bool operator==(const Model&) const = default;
};

// spec.kv: how engines divide and name blocks.
struct Kv {
  std::int64_t block_size = 16;
  std::string hash_seed;
  EventsMode events = EventsMode::Exact;
  bool operator==(const Kv&) const = default;
};

// spec.multimodal.fetch: downloads of images.
struct Fetch {
  bool allow_private_addresses = false;
  std::string connect_timeout = "5s";
  std::string timeout = "20s";
  std::int64_t redirects_max = 10;
  std::int64_t downloads_max = 64;
  bool operator==(const Fetch&) const = default;
};

// spec.multimodal.
struct Multimodal {
  std::vector<std::string> modalities = {"image"};
  std::map<std::string, std::int64_t> processor;
  std::int64_t images_max = 64;
  std::string image_bytes_max = "20Mi";
  Fetch fetch;
  Forward forward = Forward::Bytes;
  bool operator==(const Multimodal&) const = default;
};

// spec.transfer.shm.
struct ShmTransfer {
  std::string size = "2Gi";
  OnMiss on_miss = OnMiss::Reprocess;
  bool operator==(const ShmTransfer&) const = default;
};

// spec.transfer.nixl.
struct NixlTransfer {
  NixlBackend backend = NixlBackend::Ucx;
  bool operator==(const NixlTransfer&) const = default;
};

// spec.transfer: how encode workers pass embeddings on.
struct Transfer {
  TransferMode mode = TransferMode::Disabled;
  std::optional<ShmTransfer> shm;
  std::optional<NixlTransfer> nixl;
  bool operator==(const Transfer&) const = default;
};

// Quantities as text, by resource.
struct Resources {
  std::map<std::string, std::string> requests;
  std::map<std::string, std::string> limits;
  bool operator==(const Resources&) const = default;
};

}  // namespace sightline::crd
