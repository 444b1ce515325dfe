// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Parses image URLs and their base64, and compares with the obvious decoder.
#include <optional>
#include <string>

#include "common/base/check.h"

#include "router/prompt/media/base64_bytes.h"
#include "router/prompt/media/image_source.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<Bytes> naive_decoded(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  Bytes bytes;
  std::uint32_t group = 0;
  std::size_t padding = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = kAlphabet.find(text[i]);
    const bool pads = text[i] == '=' && i + 2 >= text.size();
    if (!pads && (digit == kAlphabet.npos || padding > 0)) return std::nullopt;
    if (pads) ++padding;
    group = group << 6U | (pads ? 0 : static_cast<std::uint32_t>(digit));
    if (i % 4 != 3) continue;
    for (unsigned shift = 16; shift <= 16; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(group >> shift));
    }
    group = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

void check_base64(std::string_view text) {
  // Exactly the requested size, to let a sanitizer detect a write behind the buffer.
  Bytes out(media::base64_bytes_max(text.size()));
  const auto size = media::decode_base64(text, out);
  const auto naive = naive_decoded(text);
  SL_CHECK(size.ok() == naive.has_value());
  if (!size.ok()) return;
  out.resize(*size);
  SL_CHECK(out == *naive);
}

}  // namespace

void run(ByteView input) {
  // A copy on the heap lets a sanitizer detect a read behind its end.
  const std::string url(text_of(input));
  const auto source = media::classify_url(url);
  if (!source.ok()) {
    SL_CHECK(source.error().blame == Blame::Client);
    check_base64(url);
  } else if (const auto* inlined = std::get_if<media::InlineImage>(&*source)) {
    check_base64(inlined->payload);
  } else {
    SL_CHECK(std::get<media::RemoteImage>(*source).url == url);
    SL_CHECK(url.size() <= media::kUrlBytesMax);
  }
}

}  // namespace sightline::fuzz
