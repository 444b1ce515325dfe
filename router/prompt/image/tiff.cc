// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/exif.h"
#include "router/prompt/image/formats.h"

namespace sightline::image {

// Follows Pillow's TiffImagePlugin. The XMP packet is the value of a tag. It counts only without an
// orientation tag.
Result<Measured> read_tiff(ByteView encoded) {
  const auto directory = TiffDirectory::read(encoded);
  if (!directory) return broken("the TIFF header is cut off");
  if (directory->has(Tag::WindowsMediaPhoto)) return broken("JPEG XR is not supported");
  const auto width = directory->integer(Tag::Width);
  const auto height = directory->integer(Tag::Height);
  // Pillow needs integers here. A size of another type is an error.
  if (!width || !height) return broken("the first TIFF directory has no size");
  if (*width <= 0 || *height <= 0) return broken("a side of the TIFF image is not positive");
  bool swap = false;
  if (directory->has(Tag::Orientation)) {
    const double orientation = directory->number(Tag::Orientation).value_or(1);
    swap = orientation == 5 || orientation == 6 || orientation == 7 || orientation == 8;
  } else if (const auto xmp = directory->raw(Tag::Xmp)) {
    swap = xmp_swaps_sides(*xmp);
  }
  const auto w = static_cast<std::uint64_t>(*width);
  const auto h = static_cast<std::uint64_t>(*height);
  return swap ? Measured{h, w} : Measured{w, h};
}

}  // namespace sightline::image
