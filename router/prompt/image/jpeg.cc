// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <array>

#include "router/prompt/image/exif.h"
#include "router/prompt/image/formats.h"

namespace sightline::image {
namespace {

constexpr std::string_view kExif{"Exif\0\0", 6};
constexpr std::string_view kXmp{"http://ns.adobe.com/xap/1.0/\0", 29};

// The data of the segments before the first scan.
struct Segments {
  std::uint16_t width = 0;
  std::uint16_t height = 0;
  bool has_frame = false;
  // All Exif segments, joined. A large block may be split into several segments.
  Bytes exif;
  bool has_exif = false;
  // The last packet.
  ByteView xmp;
};

// Markers that no segment follows.
bool stands_alone(std::uint8_t marker) {
  return marker == 0xC8 || (marker >= 0xD0 && marker <= 0xD9) || (marker >= 0xF0 && marker <= 0xFD);
}

bool starts_frame(std::uint8_t marker) {
  return marker == 0xDE ||
         (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC);
}

Result<Done> read_frame(Segments& segments, ByteView payload) {
  if (payload.size() < 6) return broken("a JPEG frame header is cut off");
  // Pillow rejects these frames, and so does the engine.
  if (payload[0] != 8) return broken("only JPEG samples of 8 bits are supported");
  const std::uint8_t layers = payload[5];
  if (layers != 1 && layers != 3 && layers != 4) {
    return broken("a JPEG image must have 1, 3 or 4 components");
  }
  segments.height = load_be16(&payload[1]);
  segments.width = load_be16(&payload[3]);
  segments.has_frame = true;
  return Done{};
}

void read_app1(Segments& segments, ByteView payload) {
  if (starts_with(payload, kExif)) {
    const ByteView block = payload.subspan(kExif.size());
    segments.exif.insert(segments.exif.end(), block.begin(), block.end());
    segments.has_exif = true;
  } else if (starts_with(payload, kXmp)) {
    segments.xmp = payload.subspan(kXmp.size());
  }
}

// Reads the segment of one marker. Returns true at the start of the first scan.
Result<bool> read_segment(Segments& segments, std::uint8_t marker, Cursor& cursor) {
  if (stands_alone(marker)) return false;
  const auto length = cursor.take(2);
  if (!length) return broken("the JPEG file is cut off before its first scan");
  const std::uint16_t bytes = load_be16(length->data());
  // A length below 2 is not valid, because it includes its own two bytes. Pillow reads no payload
  // then.
  const auto payload = cursor.take(bytes > 2 ? bytes - 2U : 0U);
  if (!payload) return broken("the JPEG file is cut off before its first scan");
  if (starts_frame(marker)) SL_TRY(read_frame(segments, *payload));
  if (marker == 0xE1) read_app1(segments, *payload);
  return marker == 0xDA;
}

// Visits the markers as Pillow does. Bytes between segments are skipped up to the next 0xFF.
Result<Segments> read_segments(ByteView encoded) {
  Segments segments;
  Cursor cursor(encoded.subspan(2));
  bool in_marker = false;  // the previous byte was 0xFF
  while (const auto byte = cursor.byte()) {
    if (!in_marker || *byte == 0xFF) {
      in_marker = *byte == 0xFF;
      continue;
    }
    in_marker = false;
    if (*byte == 0) continue;
    if (*byte < 0xC0) return broken("a JPEG marker is invalid");
    if (SL_TRY(read_segment(segments, *byte, cursor))) break;
  }
  return segments;
}

}  // namespace

Result<Measured> read_jpeg(ByteView encoded) {
  const Segments segments = SL_TRY(read_segments(encoded));
  if (!segments.has_frame) return broken("the JPEG file has no frame header");
  // Only metadata before the first scan count, because Pillow stops there.
  Metadata metadata{std::nullopt, segments.xmp};
  if (segments.has_exif) metadata.exif = segments.exif;
  if (swaps_sides(metadata)) return Measured{segments.height, segments.width};
  return Measured{segments.width, segments.height};
}

}  // namespace sightline::image
