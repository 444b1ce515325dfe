// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/image_size.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>

namespace sightline::api {
namespace {

using MaybeSize = std::optional<ImageSize>;

// Pillow's limit for pixels. Opening a larger file fails (DecompressionBombError).
constexpr std::uint64_t kPixelsMax = 178'956'970;
constexpr std::size_t kExifEntriesMax = 1024;

bool begins_with(ByteView bytes, std::string_view prefix) {
  return text_of(bytes.first(std::min(bytes.size(), prefix.size()))) == prefix;
}

std::optional<ByteView> slice(ByteView bytes, std::size_t offset, std::size_t size) {
  // Offsets and sizes come from the file. The check subtracts, because their sum could overflow.
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.subspan(offset, size);
}

// Returns the orientation (tag 0x0112) of a TIFF block, from 1 to 8. Without one it returns 1.
int tiff_orientation(ByteView tiff) {
  const bool little = begins_with(tiff, "II");
  if (tiff.size() < 8 || !(little || begins_with(tiff, "MM"))) return 1;
  const auto read16 = [little](const std::uint8_t* p) {
    return little ? load_le16(p) : load_be16(p);
  };
  const auto read32 = [little](const std::uint8_t* p) {
    return little ? load_le32(p) : load_be32(p);
  };
  const std::size_t directory = read32(tiff.data() + 4);
  const auto count_bytes = slice(tiff, directory, 2);
  if (!count_bytes) return 1;
  const std::size_t entries = std::min<std::size_t>(read16(count_bytes->data()), kExifEntriesMax);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto entry = slice(tiff, directory + 2 + i * 12, 12);
    if (!entry) return 1;
    if (read16(entry->data()) != 0x0112) continue;
    const unsigned type = read16(entry->data() + 2);  // 3 = SHORT, 4 = LONG
    const std::uint32_t value =
        type == 3 ? read16(entry->data() + 8) : (type == 4 ? read32(entry->data() + 8) : 0);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// The same for a block that may begin with "Exif\0\0", as in JPEG files.
int exif_orientation(ByteView exif) {
  const std::string_view prefix("Exif\0\0", 6);
  return tiff_orientation(begins_with(exif, prefix) ? exif.subspan(prefix.size()) : exif);
}

ImageSize turned(ImageSize size, int orientation) {
  // The orientations 5 to 8 turn the image by 90 degrees.
  if (orientation >= 5) std::swap(size.width, size.height);
  return size;
}

int png_orientation(ByteView file) {
  int orientation = 1;
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t size = load_be32(file.data() + at);
    const auto content = slice(file, at + 8, size);
    if (!content) break;
    if (begins_with(file.subspan(at + 4), "eXIf")) orientation = exif_orientation(*content);
    at += 12 + size;
  }
  return orientation;
}

MaybeSize png_size(ByteView file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const bool read = png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0;
  const ImageSize size{image.width, image.height};
  png_image_free(&image);
  if (!read) return std::nullopt;
  return turned(size, png_orientation(file));
}

struct JpegFailure {
  jpeg_error_mgr base;  // first: libjpeg knows only this part
  std::jmp_buf back;
};

// libjpeg reports errors by a jump out of its call. Therefore no object with a destructor may live
// in this function.
bool read_jpeg_header(jpeg_decompress_struct& jpeg, JpegFailure& failure, ByteView file) {
  jpeg.err = jpeg_std_error(&failure.base);
  failure.base.error_exit = [](j_common_ptr common) {
    std::longjmp(reinterpret_cast<JpegFailure*>(common->err)->back, 1);
  };
  // By default libjpeg prints its warnings to stderr.
  failure.base.output_message = [](j_common_ptr) {};
  if (setjmp(failure.back) != 0) return false;
  jpeg_create_decompress(&jpeg);
  // EXIF data is in an APP1 segment. By default libjpeg drops these segments.
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xffff);
  jpeg_mem_src(&jpeg, file.data(), file.size());
  return jpeg_read_header(&jpeg, TRUE) == JPEG_HEADER_OK;
}

MaybeSize jpeg_size(ByteView file) {
  jpeg_decompress_struct jpeg{};
  JpegFailure failure{};
  MaybeSize size;
  if (read_jpeg_header(jpeg, failure, file)) {
    size = ImageSize{jpeg.image_width, jpeg.image_height};
    for (auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
      const ByteView segment(marker->data, marker->data_length);
      if (!begins_with(segment, std::string_view("Exif\0\0", 6))) continue;
      size = turned(*size, exif_orientation(segment));
      break;
    }
  }
  // This also runs after an error. In a zeroed struct libjpeg finds nothing to free.
  jpeg_destroy_decompress(&jpeg);
  return size;
}

MaybeSize webp_size(ByteView file) {
  int width = 0;
  int height = 0;
  if (WebPGetInfo(file.data(), file.size(), &width, &height) == 0) return std::nullopt;
  const ImageSize size{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::size_t bytes = load_le32(file.data() + at + 4);
    const auto content = slice(file, at + 8, bytes);
    if (!content) break;
    if (begins_with(file.subspan(at), "EXIF")) return turned(size, exif_orientation(*content));
    // A RIFF chunk of odd size has one byte of padding.
    at += 8 + bytes + (bytes & 1U);
  }
  return size;
}

MaybeSize gif_size(ByteView file) {
  if (file.size() < 13) return std::nullopt;
  ImageSize size{load_le16(file.data() + 6), load_le16(file.data() + 8)};
  const unsigned flags = file[10];
  // Bit 7 announces a global colour table, of 2^(n+1) colours with 3 bytes each.
  std::size_t at = 13 + ((flags & 0x80U) != 0 ? std::size_t{3} << ((flags & 7U) + 1) : 0);
  // Extensions precede the first frame. Each is a chain of sub-blocks.
  while (at + 2 <= file.size() && file[at] == 0x21) {
    at += 2;
    while (at < file.size() && file[at] != 0) at += std::size_t{file[at]} + 1;
    ++at;
  }
  const auto frame = slice(file, at, 10);
  if (!frame || (*frame)[0] != 0x2c) return std::nullopt;
  const std::uint8_t* p = frame->data();
  // The first frame may exceed the screen. The canvas then grows until it contains the frame.
  size.width = std::max<std::uint32_t>(size.width, load_le16(p + 1) + load_le16(p + 5));
  size.height = std::max<std::uint32_t>(size.height, load_le16(p + 3) + load_le16(p + 7));
  return size;
}

MaybeSize bmp_size(ByteView file) {
  if (file.size() < 26) return std::nullopt;
  const std::uint32_t header_bytes = load_le32(file.data() + 14);
  // The oldest header form (OS/2) has sides of 16 bits.
  if (header_bytes == 12) {
    return ImageSize{load_le16(file.data() + 18), load_le16(file.data() + 20)};
  }
  const std::uint32_t height = load_le32(file.data() + 22);
  // A negative height means that the rows begin at the top.
  return ImageSize{load_le32(file.data() + 18), (height >> 31U) != 0 ? 0U - height : height};
}

MaybeSize size_by_format(ByteView file) {
  if (begins_with(file, "\x89PNG\r\n\x1a\n")) return png_size(file);
  if (begins_with(file, "\xff\xd8\xff")) return jpeg_size(file);
  if (begins_with(file, "RIFF")) return webp_size(file);
  if (begins_with(file, "GIF87a") || begins_with(file, "GIF89a")) return gif_size(file);
  if (begins_with(file, "BM")) return bmp_size(file);
  return std::nullopt;
}

// Returns whether the file ends before its last chunk or marker. A PNG may lack its closing chunk,
// but no chunk may be truncated.
bool is_cut(ByteView file) {
  if (begins_with(file, "\xff\xd8")) {
    return text_of(file).rfind("\xff\xd9") == std::string_view::npos;
  }
  if (!begins_with(file, "\x89PNG")) return false;
  std::size_t at = 8;
  while (at + 12 <= file.size() && !begins_with(file.subspan(at + 4), "IEND")) {
    at += std::size_t{load_be32(file.data() + at)} + 12;
  }
  return at > file.size();
}

Error unreadable(std::string_view why) {
  return client_error(ErrorCode::InvalidArgument, "Failed to load image: " + std::string(why));
}

}  // namespace

Result<ImageSize> measure_image(ByteView file) {
  const MaybeSize size = size_by_format(file);
  if (!size || size->width == 0 || size->height == 0 ||
      std::uint64_t{size->width} * size->height > kPixelsMax) {
    return unreadable("cannot identify image file <_io.BytesIO object>");
  }
  if (is_cut(file)) return unreadable("image file is truncated");
  return *size;
}

}  // namespace sightline::api
