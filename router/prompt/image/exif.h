// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"

namespace sightline::image {

// The tags of a TIFF directory that influence the size of an image.
enum class Tag : std::uint16_t {
  Width = 0x0100,
  Height = 0x0101,
  Orientation = 0x0112,
  Xmp = 0x02BC,
  WindowsMediaPhoto = 0xBC01,
};

// The first image file directory of a TIFF file or an Exif block, read as Pillow 13 reads it:
// - The first entry of a tag counts.
// - A value is skipped if the values so far are together larger than the file.
// - A value beyond the end of the file ends the directory.
//
// It holds views of the bytes, which must live longer. It reads nothing outside of them.
class TiffDirectory {
 public:
  // Returns nothing if the bytes do not begin with a TIFF or BigTIFF header that Pillow reads. A
  // truncated directory has the entries before its end.
  static std::optional<TiffDirectory> read(ByteView bytes);

  // Returns whether a tag has a value, of any type.
  [[nodiscard]] bool has(Tag tag) const { return find(tag) != nullptr; }
  // The first value of an integer tag.
  [[nodiscard]] std::optional<std::int64_t> integer(Tag tag) const;
  // The first value of a numeric tag of any type, rationals included. The types BYTE and UNDEFINED
  // hold no numbers.
  [[nodiscard]] std::optional<double> number(Tag tag) const;
  // The bytes of a tag of type BYTE or UNDEFINED.
  [[nodiscard]] std::optional<ByteView> raw(Tag tag) const;

 private:
  struct Entry {
    Tag tag{};
    std::uint16_t type = 0;  // 0 for an absent tag
    ByteView value;
  };
  struct Walk;

  [[nodiscard]] const Entry* find(Tag tag) const;
  void keep(std::uint16_t tag, std::uint16_t type, ByteView value);
  bool read_entry(Walk& walk, ByteView entry);
  [[nodiscard]] std::uint64_t load(const std::uint8_t* p, std::size_t size) const;

  std::array<Entry, 5> entries_{};
  bool little_endian_ = true;
  bool big_tiff_ = false;
};

// The orientation metadata of an image, as its file contains them.
struct Metadata {
  // The Exif block, with or without the prefix "Exif\0\0".
  std::optional<ByteView> exif;
  // The XMP packet, or empty.
  ByteView xmp;
};

// Returns whether the orientation swaps width and height, as the values 5 to 8 do. If the Exif
// block has an orientation of any type, it decides. Otherwise the first tiff:Orientation of the XMP
// packet decides. A broken Exif block means no orientation, even if the XMP packet has one.
bool swaps_sides(const Metadata& metadata);
// The rule for XMP alone.
bool xmp_swaps_sides(ByteView xmp);

}  // namespace sightline::image
