// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "common/base/bytes.h"
#include "common/base/error.h"

// Reads the size of a picture from its encoded bytes exactly as the engine measures it, without
// decoding a pixel. The rules are those of vLLM 0.32's image loader, that is, of Pillow 13:
// which header field counts, and which orientation (Exif or XMP) swaps the sides.
namespace sightline::image {

enum class Format : std::uint8_t { Jpeg, Png, WebP, Gif, Bmp, Tiff };

// "jpeg", "png", …: metric label and log field.
std::string_view name_of(Format format);

// Size after orientation, in pixels; both sides are at least 1.
struct Known {
  Format format{};
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const Known&, const Known&) = default;
};

// A picture that the engine may read but whose size is not known here. It is passed on as it is;
// nothing behind it in the prompt can be predicted.
struct Unknown {
  std::string_view reason;  // static text
};

// Known; Unknown; or an Error for what every engine refuses: no image format at all, a header
// that breaks its format, more pixels than kPixelsMax (TooLarge). Errors are the client's.
using Header = std::variant<Known, Unknown, Error>;

// vLLM 0.32 VLLM_MAX_IMAGE_PIXELS, which equals twice Pillow's MAX_IMAGE_PIXELS.
inline constexpr std::uint64_t kPixelsMax = 178'956'970;

// Pure; reads nothing outside the span and takes time linear in its length at worst.
// A file cut after its header may still be Known: the engine will refuse it.
Header read_header(ByteView encoded);

}  // namespace sightline::image
