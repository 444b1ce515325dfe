// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "common/base/bytes.h"
#include "common/base/error.h"

// Reads the size of an image from its encoded bytes, exactly as the engine measures it. It decodes
// no pixel. The rules are those of vLLM 0.32's image loader, which uses Pillow 13. They say which
// header field counts, and which orientation (Exif or XMP) swaps the sides.
namespace sightline::image {

// The formats whose size the router reads.
enum class Format : std::uint8_t { Jpeg, Png, WebP, Gif, Bmp, Tiff };

// The name in lower case, for example "jpeg". It is a metric label and a log field.
std::string_view name_of(Format format);

// The size after orientation, in pixels. Both sides are at least 1.
struct KnownImage {
  Format format{};
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const KnownImage&, const KnownImage&) = default;
};

// An image that the engine may read, but whose size the router does not know. The router forwards
// it, and predicts nothing behind it in the prompt.
struct UnknownImage {
  std::string_view reason;  // a static text
};

// The result for one image. An Error means that every engine rejects the image. Its reason is an
// unknown format, a header that breaks its format, or more than kPixelsMax pixels (TooLarge).
// Errors blame the client.
using Header = std::variant<KnownImage, UnknownImage, Error>;

// VLLM_MAX_IMAGE_PIXELS of vLLM 0.32, which is twice Pillow's MAX_IMAGE_PIXELS.
inline constexpr std::uint64_t kPixelsMax = 178'956'970;

// Reads the size of an image. Pure. Reads nothing outside of the span. Takes time linear in its
// length at worst. A file truncated after its header may still be a KnownImage. The engine rejects
// it.
Header read_header(ByteView encoded);

}  // namespace sightline::image
