// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/weights.h"

#include <algorithm>

namespace sightline::prepare {
namespace {

constexpr std::size_t kLooks = 64;
constexpr std::size_t kLookBytes = 64;
// Bytes of an image, or of its base64, that cost as much as one byte of text.
constexpr std::size_t kMediaBytesPerTextByte = 32;
// Weight of any image, whatever its size: 4 MiB of text that a PNG may hold compressed in 4 KB
// take 5 ms to inflate, so that at most two images are looked at on an I/O thread.
constexpr std::size_t kImageWeight = 24U << 10U;

bool is_base64(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

}  // namespace

std::size_t parse_weight(std::string_view body, Rng places) {
  const std::size_t stride = body.size() / kLooks;
  if (stride < kLookBytes) return body.size();
  std::size_t dense = 0;
  for (std::size_t i = 0; i < kLooks; ++i) {
    const std::size_t within = places.next() % (stride - kLookBytes + 1);
    const std::string_view look = body.substr(i * stride + within, kLookBytes);
    dense += std::all_of(look.begin(), look.end(), is_base64) ? 0 : 1;
  }
  return dense * stride + body.size() / kMediaBytesPerTextByte;
}

std::size_t prepare_weight(const openai::ApiRequest& request, const Downloads& downloads) {
  std::size_t text = request.document.text().size();
  const openai::ChatBody* chat = request.chat();
  if (chat == nullptr) return text;
  std::size_t media = 0;
  for (const openai::MediaPart& part : chat->media) {
    if (part.url) media += part.url->raw().size();
  }
  text -= media;
  for (const auto& download : downloads) media += download ? download->size() : 0;
  return text + media / kMediaBytesPerTextByte + chat->media.size() * kImageWeight;
}

}  // namespace sightline::prepare
