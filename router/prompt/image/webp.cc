// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/exif.h"
#include "router/prompt/image/formats.h"

namespace sightline::image {
namespace {

// The feature bits of a VP8X chunk (WebP container specification).
constexpr std::uint8_t kXmpFlag = 0x04;
constexpr std::uint8_t kExifFlag = 0x08;
constexpr std::uint8_t kAnimationFlag = 0x02;

struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

struct Chunk {
  std::string_view type;
  ByteView payload;
};

Error cut_off() { return broken("the WebP file is cut off, or its chunks have a wrong size"); }

std::uint32_t load_le24(const std::uint8_t* p) {
  return load_le16(p) | static_cast<std::uint32_t>(p[2]) << 16U;
}

// Returns the next chunk without its padding, and moves the cursor behind the padding. Returns
// nothing if the chunk does not fit.
std::optional<Chunk> next_chunk(Cursor& cursor) {
  const auto head = cursor.take(8);
  if (!head) return std::nullopt;
  const std::uint32_t size = load_le32(head->data() + 4);
  const auto padded = cursor.take(std::uint64_t{size} + (size & 1U));
  if (!padded) return std::nullopt;
  return Chunk{text_of(head->first(4)), padded->first(size)};
}

// Returns the size in a VP8 or VP8L bitstream (RFC 6386 section 9.1, WebP lossless specification).
std::optional<Size> bitstream_size(const Chunk& chunk) {
  const ByteView p = chunk.payload;
  if (chunk.type == "VP8 ") {
    if (p.size() < 10 || (p[0] & 1U) != 0 || !starts_with(p.subspan(3), "\x9d\x01\x2a")) {
      return std::nullopt;
    }
    return Size{load_le16(&p[6]) & 0x3FFFU, load_le16(&p[8]) & 0x3FFFU};
  }
  if (p.size() < 5 || p[0] != 0x2F) return std::nullopt;
  const std::uint32_t bits = load_le32(&p[1]);
  if (bits >> 29U != 0) return std::nullopt;
  return Size{(bits & 0x3FFFU) + 1, ((bits >> 14U) & 0x3FFFU) + 1};
}

bool is_bitstream(std::string_view type) { return type == "VP8 " || type == "VP8L"; }

// Reads the chunks after a VP8X header, up to the end of the RIFF container.
Result<Measured> read_extended(ByteView header, Cursor cursor) {
  if (header.size() < 10) return cut_off();
  const std::uint8_t features = header[0];
  const bool is_animated = (features & kAnimationFlag) != 0;
  const Size canvas{load_le24(&header[4]) + 1, load_le24(&header[7]) + 1};
  Metadata metadata;
  bool has_picture = false;
  // The first packet counts, even an empty one.
  bool has_xmp = false;
  while (cursor.left() != 0) {
    const auto chunk = next_chunk(cursor);
    // The behaviour of libwebp for chunks that do not fit depends on the frames before them.
    if (!chunk) return Measured{canvas.width, canvas.height, "a WebP chunk has a wrong size"};
    if (is_animated && chunk->type == "ANMF") has_picture = true;
    if (!is_animated && !has_picture && is_bitstream(chunk->type)) {
      has_picture = true;
      // The engine rejects this file.
      if (bitstream_size(*chunk) != canvas) {
        return broken("the WebP canvas and its image differ in size");
      }
    }
    if (chunk->type == "EXIF" && (features & kExifFlag) != 0 && !metadata.exif) {
      metadata.exif = chunk->payload;
    }
    if (chunk->type == "XMP " && (features & kXmpFlag) != 0 && !has_xmp) {
      metadata.xmp = chunk->payload;
      has_xmp = true;
    }
  }
  if (!has_picture) return broken("the WebP file contains no image");
  if (swaps_sides(metadata)) return Measured{canvas.height, canvas.width};
  return Measured{canvas.width, canvas.height};
}

}  // namespace

Result<Measured> read_webp(ByteView encoded) {
  if (encoded.size() < 12 || text_of(encoded.subspan(8, 4)) != "WEBP") {
    return broken("the RIFF container is not WebP");
  }
  const std::uint64_t riff_bytes = std::uint64_t{load_le32(&encoded[4])} + 8;
  // The container may be shorter than the file. Bytes behind it do not count.
  if (riff_bytes < 20 || riff_bytes > encoded.size()) return cut_off();
  Cursor cursor(encoded.subspan(12, static_cast<std::size_t>(riff_bytes) - 12));
  const auto first = next_chunk(cursor);
  if (!first) return cut_off();
  if (first->type == "VP8X") return read_extended(first->payload, cursor);
  if (!is_bitstream(first->type)) return broken("a WebP file must begin with VP8, VP8L or VP8X");
  const auto size = bitstream_size(*first);
  if (!size) return broken("the WebP bitstream header is not valid");
  return Measured{size->width, size->height};
}

}  // namespace sightline::image
