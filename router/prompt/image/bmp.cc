// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/formats.h"

namespace sightline::image {
namespace {

bool is_depth(std::uint16_t bits) {
  return bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
}

// BITMAPCOREHEADER, with 16-bit sizes.
Result<Measured> read_core(ByteView header) {
  if (!is_depth(load_le16(&header[10]))) return broken("the BMP pixel depth is not supported");
  return Measured{load_le16(&header[4]), load_le16(&header[6])};
}

// BITMAPINFOHEADER and its longer successors.
Result<Measured> read_info(ByteView header) {
  // The highest compression that Pillow decodes.
  constexpr std::uint32_t kBitfields = 3;
  if (!is_depth(load_le16(&header[14]))) return broken("the BMP pixel depth is not supported");
  if (load_le32(&header[16]) > kBitfields) return broken("the BMP compression is not supported");
  const std::uint64_t width = load_le32(&header[4]);
  std::uint64_t height = load_le32(&header[8]);
  // A negative height means that the rows are stored from the top. Pillow looks only at its highest
  // byte, and so does this code.
  if (header[11] == 0xFF) height = (std::uint64_t{1} << 32U) - height;
  return Measured{width, height};
}

}  // namespace

Result<Measured> read_dib(ByteView encoded) {
  if (encoded.size() < 4) return broken("the BMP header is cut off");
  const std::uint32_t size = load_le32(encoded.data());
  // The header sizes that Pillow accepts.
  switch (size) {
    case 12:
    case 40:
    case 52:
    case 56:
    case 64:
    case 108:
    case 124:
      break;
    default:
      return broken("the BMP header type is not supported");
  }
  if (encoded.size() < size) return broken("the BMP header is cut off");
  return size == 12 ? read_core(encoded) : read_info(encoded);
}

Result<Measured> read_bmp(ByteView encoded) {
  constexpr std::size_t kFileHeaderBytes = 14;
  if (encoded.size() < kFileHeaderBytes) return broken("the BMP file header is cut off");
  return read_dib(encoded.subspan(kFileHeaderBytes));
}

}  // namespace sightline::image
