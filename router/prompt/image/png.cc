// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <string>

#include "router/prompt/image/exif.h"
#include "router/prompt/image/formats.h"
#include "router/prompt/image/zlib_text.h"

namespace sightline::image {
namespace {

// The most bytes of a compressed text after inflation. Pillow 13 raises an error for a larger one
// (PngImagePlugin.MAX_TEXT_CHUNK).
constexpr std::size_t kTextBytesMax = std::size_t{1} << 20U;
// The most compressed texts of one file that are inflated to find an orientation. The size of a
// file with more of them is in doubt. This limits the work that a small file can cause.
constexpr std::uint32_t kInflatedTextsMax = 4;

constexpr std::string_view kXmpKey = "XML:com.adobe.xmp";
constexpr std::string_view kRawExifKey = "Raw profile type exif";

struct Chunk {
  std::string_view type;
  ByteView payload;
  // Type and payload, which the checksum covers.
  ByteView checked;
};

// The sources of the orientation in a PNG file. A later chunk replaces an earlier one.
struct Texts {
  std::optional<ByteView> exif;
  // A hexadecimal dump as ImageMagick writes it.
  std::optional<std::string> raw_exif;
  // From a text chunk with well-formed text.
  std::string xmp;
  // From an iTXt chunk, well-formed or not.
  std::string xmp_bytes;
  // Compressed texts that were inflated, and the first one above the limit.
  std::uint32_t inflated = 0;
};

struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool has_header = false;
  // A frame control chunk precedes the image data.
  bool has_frame = false;
  // The number in the animation control chunk, if the chunk is valid.
  std::optional<std::uint32_t> frames;
  Texts texts;
};

bool is_chunk_type(std::string_view type) {
  return std::all_of(type.begin(), type.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  });
}

// Returns whether this pair of bit depth and color type exists.
bool is_mode(std::uint8_t depth, std::uint8_t colour) {
  const bool small = depth == 1 || depth == 2 || depth == 4;
  const bool large = depth == 8 || depth == 16;
  if (colour == 0) return small || large;
  if (colour == 3) return small || depth == 8;
  return (colour == 2 || colour == 4 || colour == 6) && large;
}

Result<Done> read_image_header(Picture& picture, ByteView payload) {
  if (payload.size() < 13) return broken("the PNG header chunk is too short");
  picture.width = load_be32(&payload[0]);
  picture.height = load_be32(&payload[4]);
  if (is_mode(payload[8], payload[9])) picture.has_header = true;
  if (payload[11] != 0) return broken("the PNG filter method is unknown");
  return Done{};
}

Result<Done> read_animation(Picture& picture, ByteView payload) {
  if (payload.size() < 8) return broken("the PNG animation chunk is too short");
  const std::uint32_t frames = load_be32(payload.data());
  // Pillow ignores the animation if this chunk occurs twice or has no valid number.
  if (picture.frames || frames == 0 || frames > 0x8000'0000U) {
    picture.frames.reset();
  } else {
    picture.frames = frames;
  }
  return Done{};
}

// Removes the part before the first NUL and returns it in `head`. Returns false without a NUL.
bool split(std::string_view& rest, std::string_view& head) {
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return false;
  head = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return true;
}

void store_text(Texts& texts, std::string_view key, std::string text) {
  if (key == kXmpKey) texts.xmp = std::move(text);
  if (key == kRawExifKey) texts.raw_exif = std::move(text);
}

void read_plain_text(Texts& texts, std::string_view rest) {
  std::string_view key;
  if (!split(rest, key)) return;
  // Pillow keeps this text under the same key as an eXIf chunk.
  if (key == "exif") texts.exif = bytes_of(rest);
  store_text(texts, key, std::string(rest));
}

void read_compressed_text(Texts& texts, std::string_view rest) {
  std::string_view key;
  // Other texts need no inflation, because no orientation is in them.
  if (!split(rest, key) || (key != kXmpKey && key != kRawExifKey)) return;
  if (++texts.inflated > kInflatedTextsMax) return;
  std::string text;
  // The compression method. Only one exists.
  if (!rest.empty()) rest.remove_prefix(1);
  const Inflated outcome = inflate_text(bytes_of(rest), kTextBytesMax, text);
  if (outcome == Inflated::TooLarge) return;
  if (outcome == Inflated::Broken) text.clear();
  store_text(texts, key, std::move(text));
}

void read_international_text(Texts& texts, std::string_view rest) {
  std::string_view key;
  if (!split(rest, key) || (key != kXmpKey && key != kRawExifKey) || rest.size() < 2) return;
  const bool compressed = rest[0] != 0;
  const bool known_method = rest[1] == 0;
  rest.remove_prefix(2);
  std::string_view language;
  std::string_view translated;
  if (!split(rest, language) || !split(rest, translated)) return;
  std::string text(rest);
  if (compressed) {
    if (!known_method || ++texts.inflated > kInflatedTextsMax) return;
    if (inflate_text(bytes_of(rest), kTextBytesMax, text) != Inflated::Whole) return;
  }
  // Pillow keeps the bytes of XMP even if the text is not UTF-8.
  if (key == kXmpKey) texts.xmp_bytes = text;
  if (is_utf8(language) && is_utf8(translated) && is_utf8(text)) {
    store_text(texts, key, std::move(text));
  }
}

void read_text(Texts& texts, const Chunk& chunk) {
  const std::string_view rest = text_of(chunk.payload);
  if (chunk.type == "eXIf") texts.exif = chunk.payload;
  if (chunk.type == "tEXt") read_plain_text(texts, rest);
  if (chunk.type == "zTXt") read_compressed_text(texts, rest);
  if (chunk.type == "iTXt") read_international_text(texts, rest);
}

// Returns the next chunk. The checksum after it is not consumed. Returns nothing if the file ends
// or the chunk is cut off.
std::optional<Chunk> next_chunk(Cursor& cursor) {
  const auto head = cursor.take(8);
  if (!head) return std::nullopt;
  const auto payload = cursor.take(load_be32(head->data()));
  if (!payload) return std::nullopt;
  return Chunk{text_of(head->subspan(4)), *payload,
               ByteView(head->data() + 4, payload->size() + 4)};
}

bool is_image_data(std::string_view type) {
  return type == "IDAT" || type == "DDAT" || type == "fdAT";
}

// Reads the chunks before the image data. Each chunk must be complete and have a valid checksum.
// Pillow ignores a start of image data before a usable header, and so does this function.
Result<Done> read_before_data(Cursor& cursor, Picture& picture) {
  while (true) {
    const auto head = Cursor(cursor).take(8);
    if (!head) return broken("the PNG file is cut off before its image data");
    const std::string_view type = text_of(head->subspan(4));
    if (!is_chunk_type(type)) return broken("a PNG chunk has no valid type");
    if (type == "IEND") return Done{};
    if (picture.has_header && (type == "IDAT" || type == "fdAT")) return Done{};
    const auto chunk = next_chunk(cursor);
    if (!chunk) return broken("the PNG file is cut off before its image data");
    if (type == "IHDR") SL_TRY(read_image_header(picture, chunk->payload));
    if (type == "acTL") SL_TRY(read_animation(picture, chunk->payload));
    if (type == "fcTL") picture.has_frame = true;
    const auto checksum = cursor.take(4);
    if (!checksum || load_be32(checksum->data()) != crc32_of(chunk->checked)) {
      return broken("a PNG chunk has a wrong checksum");
    }
    read_text(picture.texts, *chunk);
  }
}

// Reads the chunks after the image data. Pillow reads them up to the second frame, and does not
// check their checksums.
void read_after_data(Cursor& cursor, Picture& picture, bool is_animated) {
  bool in_data = true;
  while (const auto chunk = next_chunk(cursor)) {
    if (!is_chunk_type(chunk->type) || chunk->type == "IEND") return;
    in_data = in_data && is_image_data(chunk->type);
    if (!in_data && chunk->type == "fcTL" && is_animated) return;
    read_text(picture.texts, *chunk);
    if (!cursor.take(4)) return;
  }
}

// Returns the bytes of a "Raw profile type exif" dump: three lines, and then hexadecimal digits.
std::optional<Bytes> raw_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return Bytes{};
    text.remove_prefix(end + 1);
  }
  std::string digits;
  for (const char c : text) {
    if (c != '\n' && c != ' ' && c != '\r' && c != '\t') digits.push_back(c);
  }
  return from_hex(digits);
}

bool is_swapped(const Texts& texts) {
  const std::string& xmp = texts.xmp.empty() ? texts.xmp_bytes : texts.xmp;
  Metadata metadata{texts.exif, bytes_of(xmp)};
  std::optional<Bytes> profile;
  if (!metadata.exif && texts.raw_exif) {
    profile = raw_profile(*texts.raw_exif);
    if (profile) metadata.exif = *profile;
  }
  return swaps_sides(metadata);
}

}  // namespace

Result<Measured> read_png(ByteView encoded) {
  Cursor cursor(encoded.subspan(8));
  Picture picture;
  SL_TRY(read_before_data(cursor, picture));
  if (!picture.has_header) return broken("the PNG file has no usable header chunk");
  // If no frame control chunk precedes the image data, the default image is one more frame.
  const std::uint64_t frames =
      std::uint64_t{picture.frames.value_or(1)} + (picture.frames && !picture.has_frame ? 1 : 0);
  read_after_data(cursor, picture, frames > 1);
  // The orientation may be in a text that was not inflated.
  if (picture.texts.inflated > kInflatedTextsMax) {
    return Measured{picture.width, picture.height, "too many compressed texts in a PNG file"};
  }
  if (is_swapped(picture.texts)) return Measured{picture.height, picture.width};
  return Measured{picture.width, picture.height};
}

}  // namespace sightline::image
