// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/exif.h"

#include <bit>
#include <bitset>
#include <cmath>
#include <limits>
#include <string_view>

namespace sightline::image {
namespace {

// The bytes of the TIFF 6.0 and BigTIFF field types, by their number. 0 marks types that Pillow
// skips.
constexpr std::array<std::uint8_t, 17> kTypeBytes{0, 1, 1, 2, 4, 8, 1, 1, 2,
                                                  4, 8, 4, 8, 4, 0, 0, 8};
enum Type : std::uint16_t {
  kByte = 1,
  kShort = 3,
  kLong = 4,
  kRational = 5,
  kSignedByte = 6,
  kUndefined = 7,
  kSignedShort = 8,
  kSignedLong = 9,
  kSignedRational = 10,
  kFloat = 11,
  kDouble = 12,
  kIfd = 13,
  kLong8 = 16,
};

constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

bool is_swapping(double orientation) {
  return orientation == 5 || orientation == 6 || orientation == 7 || orientation == 8;
}

}  // namespace

// The state of one pass over a directory.
struct TiffDirectory::Walk {
  ByteView bytes;
  // Bytes of all values outside of their entries, including skipped ones.
  std::uint64_t value_bytes = 0;
  // Tags that have a value. Pillow does not read a further entry of the same tag, even if the first
  // value is bad.
  std::bitset<65'536> seen;
};

std::uint64_t TiffDirectory::load(const std::uint8_t* p, std::size_t size) const {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8U | p[little_endian_ ? size - 1 - i : i];
  }
  return value;
}

const TiffDirectory::Entry* TiffDirectory::find(Tag tag) const {
  for (const Entry& entry : entries_) {
    if (entry.type != 0 && entry.tag == tag) return &entry;
  }
  return nullptr;
}

void TiffDirectory::keep(std::uint16_t tag, std::uint16_t type, ByteView value) {
  switch (static_cast<Tag>(tag)) {
    case Tag::Width:
    case Tag::Height:
    case Tag::Orientation:
    case Tag::Xmp:
    case Tag::WindowsMediaPhoto:
      break;
    default:
      return;
  }
  for (Entry& entry : entries_) {
    if (entry.type != 0) continue;
    entry = {static_cast<Tag>(tag), type, value};
    return;
  }
}

// Reads one entry. Returns false if the directory ends here.
bool TiffDirectory::read_entry(Walk& walk, ByteView entry) {
  const std::size_t word = big_tiff_ ? 8 : 4;
  const auto tag = static_cast<std::uint16_t>(load(&entry[0], 2));
  const auto type = static_cast<std::uint16_t>(load(&entry[2], 2));
  const std::uint64_t count = load(&entry[4], word);
  if (walk.seen.test(tag)) return true;
  if (type >= kTypeBytes.size() || kTypeBytes[type] == 0) return true;
  const std::uint64_t unit = kTypeBytes[type];
  // Sizes saturate, because a hostile count could make the product overflow.
  const std::uint64_t size = count > std::numeric_limits<std::uint64_t>::max() / unit
                                 ? std::numeric_limits<std::uint64_t>::max()
                                 : count * unit;
  if (size == 0) return true;
  const ByteView inside = entry.subspan(4 + word, word);
  // A value of up to one word is inside of its entry. A larger one is at an offset.
  if (size <= word) {
    walk.seen.set(tag);
    keep(tag, type, inside.first(static_cast<std::size_t>(size)));
    return true;
  }
  const std::uint64_t offset = load(inside.data(), word);
  if (offset > std::numeric_limits<std::int64_t>::max()) return true;
  // Values that are together larger than the file are skipped, as in Pillow.
  walk.value_bytes = saturating_add(walk.value_bytes, size);
  if (walk.value_bytes > walk.bytes.size()) return true;
  if (offset > walk.bytes.size() || size > walk.bytes.size() - offset) return false;
  walk.seen.set(tag);
  keep(tag, type,
       walk.bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
  return true;
}

std::optional<TiffDirectory> TiffDirectory::read(ByteView bytes) {
  if (bytes.size() < 8) return std::nullopt;
  TiffDirectory directory;
  const bool little = bytes[0] == 'I' && bytes[1] == 'I';
  if (!little && !(bytes[0] == 'M' && bytes[1] == 'M')) return std::nullopt;
  directory.little_endian_ = little;
  // Both byte orders of the number 42 are accepted. The number 43 means BigTIFF. Pillow recognises
  // it in little-endian files only. In big-endian files it reads the classic layout.
  const bool classic = (bytes[2] == 42 && bytes[3] == 0) || (bytes[2] == 0 && bytes[3] == 42);
  directory.big_tiff_ = little && bytes[2] == 43 && bytes[3] == 0;
  if (!classic && !directory.big_tiff_ && !(bytes[2] == 0 && bytes[3] == 43 && !little)) {
    return std::nullopt;
  }
  if (directory.big_tiff_ && bytes.size() < 16) return std::nullopt;
  const std::uint64_t start =
      directory.big_tiff_ ? directory.load(&bytes[8], 8) : directory.load(&bytes[4], 4);

  const std::size_t count_bytes = directory.big_tiff_ ? 8 : 2;
  const std::size_t entry_bytes = directory.big_tiff_ ? 20 : 12;
  if (start > bytes.size() || bytes.size() - start < count_bytes) return directory;
  std::size_t at = static_cast<std::size_t>(start);
  const std::uint64_t count = directory.load(&bytes[at], count_bytes);
  at += count_bytes;
  Walk walk{.bytes = bytes};
  for (std::uint64_t i = 0; i < count && bytes.size() - at >= entry_bytes; ++i) {
    if (!directory.read_entry(walk, bytes.subspan(at, entry_bytes))) break;
    at += entry_bytes;
  }
  return directory;
}

std::optional<std::int64_t> TiffDirectory::integer(Tag tag) const {
  const Entry* entry = find(tag);
  if (entry == nullptr) return std::nullopt;
  const std::uint64_t bits = load(entry->value.data(), kTypeBytes[entry->type]);
  switch (entry->type) {
    case kShort:
    case kLong:
    case kIfd:
    case kLong8:
      return static_cast<std::int64_t>(bits);
    case kSignedByte:
      return static_cast<std::int8_t>(bits);
    case kSignedShort:
      return static_cast<std::int16_t>(bits);
    case kSignedLong:
      return static_cast<std::int32_t>(bits);
    default:
      return std::nullopt;
  }
}

std::optional<double> TiffDirectory::number(Tag tag) const {
  if (const auto whole = integer(tag)) return static_cast<double>(*whole);
  const Entry* entry = find(tag);
  if (entry == nullptr) return std::nullopt;
  const std::uint8_t* p = entry->value.data();
  switch (entry->type) {
    case kFloat:
      return std::bit_cast<float>(static_cast<std::uint32_t>(load(p, 4)));
    case kDouble:
      return std::bit_cast<double>(load(p, 8));
    case kRational:
      return static_cast<double>(load(p, 4)) / static_cast<double>(load(p + 4, 4));
    case kSignedRational:
      return static_cast<double>(static_cast<std::int32_t>(load(p, 4))) /
             static_cast<double>(static_cast<std::int32_t>(load(p + 4, 4)));
    default:
      return std::nullopt;
  }
}

std::optional<ByteView> TiffDirectory::raw(Tag tag) const {
  const Entry* entry = find(tag);
  if (entry == nullptr || (entry->type != kByte && entry->type != kUndefined)) return std::nullopt;
  return entry->value;
}

bool xmp_swaps_sides(ByteView xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  const std::string_view text = text_of(xmp);
  // Pillow searches the text, and does not parse the XML.
  for (std::size_t at = text.find(kName); at != std::string_view::npos;
       at = text.find(kName, at + 1)) {
    std::string_view rest = text.substr(at + kName.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with('>')) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (rest.empty() || rest[0] < '0' || rest[0] > '9') continue;
    return is_swapping(rest[0] - '0');
  }
  return false;
}

bool swaps_sides(const Metadata& metadata) {
  constexpr std::string_view kExifPrefix{"Exif\0\0", 6};
  ByteView exif = metadata.exif.value_or(ByteView{});
  // Pillow removes this prefix twice at most.
  for (int i = 0; i < 2 && text_of(exif).starts_with(kExifPrefix); ++i) {
    exif = exif.subspan(kExifPrefix.size());
  }
  if (exif.empty()) return xmp_swaps_sides(metadata.xmp);
  // Pillow gives eight bytes of an Exif block to the parser of the header, which are too few for
  // BigTIFF.
  if (exif.size() > 2 && exif[0] == 'I' && exif[2] == 43) return false;
  const auto directory = TiffDirectory::read(exif);
  if (!directory) return false;
  if (!directory->has(Tag::Orientation)) return xmp_swaps_sides(metadata.xmp);
  const auto orientation = directory->number(Tag::Orientation);
  return orientation && is_swapping(*orientation);
}

}  // namespace sightline::image
