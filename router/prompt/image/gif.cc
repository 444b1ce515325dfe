// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>

#include "router/prompt/image/formats.h"

namespace sightline::image {
namespace {

Error cut_off() { return broken("the GIF file ends before its first image"); }

// Returns the next sub-block. It is empty at the terminator and at the end of the file.
ByteView next_block(Cursor& cursor) {
  const auto size = cursor.byte();
  return size && *size != 0 ? cursor.take_up_to(*size) : ByteView{};
}

void skip_blocks(Cursor& cursor) {
  while (!next_block(cursor).empty()) {
  }
}

// Skips an extension, after its '!'.
Result<Done> skip_extension(Cursor& cursor) {
  constexpr std::uint8_t kGraphicControl = 249;
  constexpr std::uint8_t kComment = 254;
  constexpr std::uint8_t kApplication = 255;
  const auto label = cursor.byte();
  if (!label) return cut_off();
  const ByteView block = next_block(cursor);
  if (*label == kGraphicControl && !block.empty()) {
    const std::size_t needed = (block[0] & 1U) != 0 ? 4 : 3;
    if (block.size() < needed) return broken("a GIF graphic control block is too short");
  }
  // Pillow itself reads the block after "NETSCAPE2.0". A comment that begins with the terminator
  // has no further blocks.
  if (*label == kApplication && starts_with(block, "NETSCAPE2.0")) next_block(cursor);
  if (*label == kComment && block.empty()) return Done{};
  skip_blocks(cursor);
  return Done{};
}

// Reads an image descriptor, after its ','. The canvas grows until it contains the first frame.
Result<Measured> read_descriptor(Cursor& cursor, Measured canvas) {
  const auto box = cursor.take(9);
  if (!box) return cut_off();
  const std::uint8_t* p = box->data();
  canvas.width = std::max<std::uint64_t>(canvas.width, load_le16(p) + load_le16(p + 4));
  canvas.height = std::max<std::uint64_t>(canvas.height, load_le16(p + 2) + load_le16(p + 6));
  const std::uint8_t flags = p[8];
  // The flags announce a color table. Its length follows from their lowest three bits.
  if ((flags & 0x80U) != 0) cursor.take_up_to(std::size_t{3} << ((flags & 7U) + 1));
  // The code size of the image data. Pillow needs this byte.
  if (!cursor.byte()) return cut_off();
  return canvas;
}

}  // namespace

Result<Measured> read_gif(ByteView encoded) {
  Cursor cursor(encoded.subspan(6));
  const auto screen = cursor.take(7);
  if (!screen) return cut_off();
  const Measured canvas{load_le16(screen->data()), load_le16(screen->data() + 2)};
  const std::uint8_t flags = (*screen)[4];
  if ((flags & 0x80U) != 0) cursor.take_up_to(std::size_t{3} << ((flags & 7U) + 1));
  // Other bytes between the blocks are skipped.
  while (const auto introducer = cursor.byte()) {
    if (*introducer == ';') break;
    if (*introducer == '!') SL_TRY(skip_extension(cursor));
    if (*introducer == ',') return read_descriptor(cursor, canvas);
  }
  return cut_off();
}

}  // namespace sightline::image
