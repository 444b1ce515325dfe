// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/weights.h"

#include <algorithm>

namespace sightline::prepare {
namespace {

constexpr std::size_t kLooks = 96;
constexpr std::size_t kLookBytes = 64;
// Token ids, escapes and small objects cost 3 to 30 ns per byte to parse.
constexpr std::size_t kDenseWeight = 2;
// Ordinary text costs 16 ns per byte. Words that no vocabulary has, and messages of a few bytes
// each, cost 100 to 300 ns per byte. The real cost is known only after tokenizing.
constexpr std::size_t kTextWeight = 20;
// The bytes of an image, or of its base64, that cost as much as one byte of text.
constexpr std::size_t kMediaBytesPerTextByte = 32;
// The weight of any image. A PNG may hold 4 MiB of text, compressed to 4 KB, which take 5 ms to
// inflate. With this weight, an I/O thread looks at two images at most.
constexpr std::size_t kImageWeight = 24U << 10U;

// The rendered text exists while it grows, and afterwards.
constexpr std::size_t kTextCopies = 2;
// The token ids exist as the tokenizer returns them, and with expanded placeholders.
constexpr std::size_t kTokenCopies = 2;
// Text of single letters or digits, each followed by a comma or blank, has this many bytes per
// token.
constexpr std::size_t kBytesPerTokenMin = 2;
// A value of the template language, with its place in a dict.
constexpr std::size_t kValueBytes = 128;

bool is_base64(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

// Bytes of all media URLs of the request, which include inline images.
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
  // A short body is parsed quickly in any case. It counts as dense, without looks.
  if (stride < kLookBytes) return body.size() * kDenseWeight;
  std::size_t dense = 0;
  for (std::size_t i = 0; i < kLooks; ++i) {
    // One look in each stride. A client cannot hide dense JSON by its position.
    const std::size_t within = places.next() % (stride - kLookBytes + 1);
    const std::string_view look = body.substr(i * stride + within, kLookBytes);
    // Base64 has no other characters. A look with a quote, comma or brace counts as dense.
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
  // Only chat templates turn the JSON into values.
  const std::size_t values = request.chat() != nullptr ? request.document.kept_count() : 0;
  return text * kTextCopies + tokens * sizeof(TokenId) * kTokenCopies + values * kValueBytes;
}

}  // namespace sightline::prepare
