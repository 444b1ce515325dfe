// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"

namespace sightline::image {

// The tags of a TIFF directory that matter here.
enum class Tag : std::uint16_t {
  Width = 0x0100,
  Height = 0x0101,
  Orientation = 0x0112,
  Xmp = 0x02BC,
  WindowsMediaPhoto = 0xBC01,
};

// The first image file directory of a TIFF file or an Exif block, read as Pillow 13 does: the
// first entry of a tag wins, values that do not fit into the file are skipped, and a value that
// is cut off ends the directory. Holds views of the bytes, which must outlive it.
class TiffDirectory {
 public:
  // Nothing when the bytes do not begin with a TIFF or BigTIFF header that Pillow reads.
  static std::optional<TiffDirectory> read(ByteView bytes);

  [[nodiscard]] bool has(Tag tag) const { return find(tag) != nullptr; }
  // The first value of an integer tag.
  [[nodiscard]] std::optional<std::int64_t> integer(Tag tag) const;
  // The first value of a numeric tag of any type, rationals included; bytes are no numbers.
  [[nodiscard]] std::optional<double> number(Tag tag) const;
  // The bytes of a tag of type BYTE or UNDEFINED.
  [[nodiscard]] std::optional<ByteView> raw(Tag tag) const;

 private:
  struct Entry {
    Tag tag{};
    std::uint16_t type = 0;  // 0: absent
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

// Orientation metadata of a picture, as found in its file.
struct Metadata {
  std::optional<ByteView> exif;  // with or without "Exif\0\0" in front
  ByteView xmp;                  // empty if none
};

// True if the orientation swaps width and height (values 5 to 8). Exif decides when it holds an
// orientation of whatever type; else the first tiff:Orientation of the XMP packet does. A broken
// Exif block counts as no orientation at all.
bool swaps_sides(const Metadata& metadata);
// The XMP rule alone.
bool xmp_swaps_sides(ByteView xmp);

}  // namespace sightline::image
