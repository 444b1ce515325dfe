// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/contract/identity_key.h"
#include "common/runtime/task.h"

#include "router/openai/request.h"
#include "router/prompt/media/fetcher.h"
#include "router/prompt/model/model_directory.h"

namespace sightline::prepare {

// A media item of a request with what its bytes say.
struct ResolvedMedia {
  openai::Modality modality = openai::Modality::Image;
  // Name under which the engine shall keep it: MediaId of the bytes in hexadecimal. Empty for
  // items whose bytes the router does not see; those keep what the client sent.
  std::string identifier;
  // Size as the engine measures it; 0 when the format is not known here.
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::optional<std::uint32_t> tokens;  // placeholder tokens, nothing when unknown
  // "jpeg", "png", … or "unknown", "not_image": metric label.
  std::string outcome;
  // The bytes of a downloaded image, absent for inline ones.
  std::shared_ptr<const Bytes> fetched;
};

// What the resolving of media depends on besides the request; the references outlive the calls.
struct MediaRules {
  const model::ModelProfile& profile;
  const contract::IdentityKey& key;
  std::uint64_t image_bytes_max = 20U << 20U;
};

// Downloads of a request, parallel to its media items; empty for inline ones.
using Downloads = std::vector<std::shared_ptr<const Bytes>>;

// Downloads every item with an http(s) URL, of whatever modality, once all items are found
// well-formed: a URL that several items have once, all together bytes_max at most. Ends the
// downloads when the client has left. Must run on an I/O thread; a stop may be asked for on it. The
// items outlive it.
// Errors: those of media::classify_url() and Fetcher::fetch(), param naming the item at fault.
Task<Result<Downloads>> download_media(std::span<const openai::MediaPart> media,
                                       media::Fetcher& fetcher, std::uint64_t bytes_max,
                                       std::stop_token left);

// Identity, size and token count of every item. Blocking work: decodes and hashes the bytes.
// Errors: the client's, param naming the item.
Result<std::vector<ResolvedMedia>> resolve_media(const openai::ApiRequest& request,
                                                 const Downloads& downloads,
                                                 const MediaRules& rules);

// The bytes as "data:<mime>;base64,…" for the engine.
std::string data_url_of(const ResolvedMedia& item);
// The same of bytes that nobody has looked at.
std::string data_url_of(ByteView bytes);

}  // namespace sightline::prepare
