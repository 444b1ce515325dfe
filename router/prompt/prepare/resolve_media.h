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

// A media item of a request, with the facts that its bytes give.
struct ResolvedMedia {
  openai::Modality modality = openai::Modality::Image;
  // The name under which the engine keeps the item: the MediaId of the bytes in hexadecimal digits.
  // It is empty for items whose bytes the router does not see. These keep the name that the client
  // sent.
  std::string identifier;
  // Size in pixels as the engine measures it, 0 if the router does not know the format.
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  // Placeholder tokens, absent if unknown.
  std::optional<std::uint32_t> tokens;
  // The label of the metric: a format (for example "jpeg" or "png"), "unknown" or "not_image".
  std::string outcome;
  // The bytes of a downloaded image. Null for inline images.
  std::shared_ptr<const Bytes> fetched;
};

// The data that resolve_media() needs besides the request. The references must live longer than the
// calls.
struct MediaRules {
  const model::ModelProfile& profile;
  const contract::IdentityKey& key;
  // media.image_bytes_max: encoded bytes of one image.
  std::uint64_t image_bytes_max = 20U << 20U;
};

// The downloads of a request, parallel to its media items. Null for inline ones.
using Downloads = std::vector<std::shared_ptr<const Bytes>>;

// Downloads every item with an http or https URL, of any modality. It first checks the form of all
// items. A URL that several items have is downloaded once. All downloads together have at most
// bytes_max bytes. When `left` is stopped, the downloads end.
//
// Must run on an I/O thread. The stop may be requested on this thread. The items must live longer
// than the task.
//
// Errors: those of media::classify_url() and Fetcher::fetch(). `param` names the item at fault.
Task<Result<Downloads>> download_media(std::span<const openai::MediaPart> media,
                                       media::Fetcher& fetcher, std::uint64_t bytes_max,
                                       std::stop_token left);

// Computes identity, size and token count of every item. Blocking work: decodes and hashes the
// bytes. A completion request has no items.
//
// Errors: blamed on the client, `param` names the item.
Result<std::vector<ResolvedMedia>> resolve_media(const openai::ApiRequest& request,
                                                 const Downloads& downloads,
                                                 const MediaRules& rules);

// Returns the downloaded bytes as "data:<mime>;base64,…" for the engine.
std::string data_url_of(const ResolvedMedia& item);
// Does the same for bytes of unknown format.
std::string data_url_of(ByteView bytes);

}  // namespace sightline::prepare
