// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/weights.h"

#include <algorithm>

namespace sightline::prepare {
namespace {

constexpr std::size_t kLooks = 96;
constexpr std::size_t kLookBytes = 64;
// Token ids, escapes and small objects cost 3 to 30 ns a byte to parse.
constexpr std::size_t kDenseWeight = 2;
// Ordinary text costs 16 ns a byte, and words that no vocabulary has 100 to 300 ns, as do messages
// of a few bytes each: what they will cost is only known when they are tokenized.
constexpr std::size_t kTextWeight = 20;
// Bytes of an image, or of its base64, that cost as much as one byte of text.
constexpr std::size_t kMediaBytesPerTextByte = 32;
// Weight of any image, whatever its size: 4 MiB of text that a PNG may hold compressed in 4 KB
// take 5 ms to inflate, so that at most two images are looked at on an I/O thread.
constexpr std::size_t kImageWeight = 24U << 10U;

// The text as it is rendered, and as it grows.
constexpr std::size_t kTextCopies = 2;
// Token ids as they come from the tokenizer, and with placeholders expanded.
constexpr std::size_t kTokenCopies = 2;
// Of text of single letters or digits, each with a comma or blank.
constexpr std::size_t kBytesPerTokenMin = 2;
// A value of the template language with its place in a dict.
constexpr std::size_t kValueBytes = 128;

bool is_base64(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

// Of inline images, as URLs.
std::size_t inline_bytes(const openai::ApiRequest& request) {
  std::size_t bytes = 0;
  const openai::ChatBody* chat = request.chat();
  if (chat == nullptr) return bytes;
  for (const openai::MediaPart& part : chat->media) {
    if (part.url) bytes += part.url->raw().size();
  }
  return bytes;
}

}  // namespace

std::size_t parse_weight(std::string_view body, Rng places) {
  const std::size_t stride = body.size() / kLooks;
  if (stride < kLookBytes) return body.size() * kDenseWeight;
  std::size_t dense = 0;
  for (std::size_t i = 0; i < kLooks; ++i) {
    const std::size_t within = places.next() % (stride - kLookBytes + 1);
    const std::string_view look = body.substr(i * stride + within, kLookBytes);
    dense += std::all_of(look.begin(), look.end(), is_base64) ? 0 : 1;
  }
  return dense * stride * kDenseWeight + body.size() / kMediaBytesPerTextByte;
}

std::size_t prepare_weight(const openai::ApiRequest& request, const Downloads& downloads) {
  const openai::ChatBody* chat = request.chat();
  std::size_t media = inline_bytes(request);
  const std::size_t text = request.document.text().size() - media;
  if (chat == nullptr) return text * kTextWeight;
  for (const auto& download : downloads) media += download ? download->size() : 0;
  return text * kTextWeight + media / kMediaBytesPerTextByte + chat->media.size() * kImageWeight;
}

std::size_t prepare_bytes(const openai::ApiRequest& request, std::size_t tokens_max) {
  const std::size_t text = request.document.text().size() - inline_bytes(request);
  const std::size_t tokens = std::min(text / kBytesPerTokenMin, tokens_max);
  const std::size_t values = request.chat() != nullptr ? request.document.kept_count() : 0;
  return text * kTextCopies + tokens * sizeof(TokenId) * kTokenCopies + values * kValueBytes;
}

}  // namespace sightline::prepare
