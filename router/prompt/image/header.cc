// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/header.h"

#include <array>
#include <string>

#include "router/prompt/image/formats.h"

namespace sightline::image {
namespace {

using Reader = Result<Measured> (*)(ByteView);

// The first bytes of a format, and its reader. The first match counts.
struct Signature {
  std::string_view prefix;
  Format format;
  Reader read;
};

// A string literal that contains NUL bytes.
template <std::size_t N>
constexpr std::string_view magic(const char (&literal)[N]) {
  return {literal, N - 1};
}

constexpr std::array<Signature, 19> kSignatures{{
    {magic("\xff\xd8\xff"), Format::Jpeg, read_jpeg},
    {magic("\x89PNG\r\n\x1a\n"), Format::Png, read_png},
    {magic("GIF87a"), Format::Gif, read_gif},
    {magic("GIF89a"), Format::Gif, read_gif},
    {magic("BM"), Format::Bmp, read_bmp},
    {magic("\x0c\0\0\0"), Format::Bmp, read_dib},
    {magic("\x28\0\0\0"), Format::Bmp, read_dib},
    {magic("\x34\0\0\0"), Format::Bmp, read_dib},
    {magic("\x38\0\0\0"), Format::Bmp, read_dib},
    {magic("\x40\0\0\0"), Format::Bmp, read_dib},
    {magic("\x6c\0\0\0"), Format::Bmp, read_dib},
    {magic("\x7c\0\0\0"), Format::Bmp, read_dib},
    {magic("MM\0\x2a"), Format::Tiff, read_tiff},
    {magic("II\x2a\0"), Format::Tiff, read_tiff},
    {magic("MM\x2a\0"), Format::Tiff, read_tiff},
    {magic("II\0\x2a"), Format::Tiff, read_tiff},
    {magic("MM\0\x2b"), Format::Tiff, read_tiff},
    {magic("II\x2b\0"), Format::Tiff, read_tiff},
    {magic("RIFF"), Format::WebP, read_webp},
}};

// Other formats that Pillow 13 decodes, by the bytes that its plugins test. vLLM 0.32 rejects
// formats that Pillow can only identify (EPS, WMF, HDF5, …), and they are not listed. Formats that
// have no signature and are no exchange formats are not listed either (IM, IPTC, PCD, SPIDER).
constexpr std::array kOtherSignatures{magic("BLP1"),
                                      magic("BLP2"),
                                      magic("\0\0\2\0"),
                                      magic("\xb1\x68\xde\x3a"),
                                      magic("DDS "),
                                      magic("SIMPLE"),
                                      magic("FTEX"),
                                      magic("\xff\x4f\xff\x51"),
                                      magic("icns"),
                                      magic("\x00\x00\x00\x0cjP  \x0d\x0a\x87\x0a"),
                                      magic("\0\0\1\0"),
                                      magic("\0\0\0\0\0\0\0\4"),
                                      magic("DanM"),
                                      magic("LinS"),
                                      magic("\x80\xe8\0\0"),
                                      magic("8BPS"),
                                      magic("qoif"),
                                      magic("\x01\xda"),
                                      magic("\x59\xa6\x6a\x95"),
                                      magic("#define"),
                                      magic("\n#define"),
                                      magic("/*"),
                                      magic("P7 332")};

bool is_avif(ByteView bytes) {
  if (bytes.size() < 12 || text_of(bytes.subspan(4, 4)) != "ftyp") return false;
  const std::string_view brand = text_of(bytes.subspan(8, 4));
  return brand == "avif" || brand == "avis" || brand == "mif1" || brand == "msf1";
}

bool is_pcx(ByteView bytes) {
  return bytes.size() >= 2 && bytes[0] == 10 &&
         (bytes[1] == 0 || bytes[1] == 2 || bytes[1] == 3 || bytes[1] == 5);
}

bool is_ppm(ByteView bytes) {
  return bytes.size() >= 2 && bytes[0] == 'P' &&
         std::string_view("0123456fy").find(static_cast<char>(bytes[1])) != std::string_view::npos;
}

bool is_fli(ByteView bytes) {
  if (bytes.size() < 16) return false;
  const auto kind = load_le16(&bytes[4]);
  const auto flags = load_le16(&bytes[14]);
  return (kind == 0xAF11 || kind == 0xAF12) && (flags == 0 || flags == 3);
}

bool is_gimp_brush(ByteView bytes) {
  if (bytes.size() < 8) return false;
  const auto version = load_be32(&bytes[4]);
  return load_be32(&bytes[0]) >= 20 && (version == 1 || version == 2);
}

// TGA has no signature. Its header must be plausible as a whole.
bool is_tga(ByteView bytes) {
  if (bytes.size() < 18) return false;
  const std::uint8_t type = bytes[2] & 0xF7U;
  const std::uint8_t depth = bytes[16];
  return bytes[1] <= 1 && type >= 1 && type <= 3 && bytes[2] <= 11 && load_le16(&bytes[12]) != 0 &&
         load_le16(&bytes[14]) != 0 &&
         (depth == 1 || depth == 8 || depth == 16 || depth == 24 || depth == 32);
}

bool is_other_image(ByteView bytes) {
  for (const std::string_view prefix : kOtherSignatures) {
    if (starts_with(bytes, prefix)) return true;
  }
  return is_avif(bytes) || is_pcx(bytes) || is_ppm(bytes) || is_fli(bytes) ||
         is_gimp_brush(bytes) || is_tga(bytes);
}

Header judged(Result<Measured> result, Format format) {
  if (!result.ok()) return std::move(result).error();
  const Measured& size = *result;
  if (!size.doubt.empty()) return UnknownImage{size.doubt};
  if (size.width == 0 || size.height == 0) return broken("a side is 0");
  // Each side is compared first. The product of two 32-bit sides then cannot overflow.
  if (size.width > kPixelsMax || size.height > kPixelsMax ||
      size.width * size.height > kPixelsMax) {
    return client_error(ErrorCode::TooLarge,
                        "the image has " + std::to_string(size.width) + " x " +
                            std::to_string(size.height) + " pixels, more than the limit of " +
                            std::to_string(kPixelsMax) + ". Send a smaller one");
  }
  return KnownImage{format, static_cast<std::uint32_t>(size.width),
                    static_cast<std::uint32_t>(size.height)};
}

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::Jpeg:
      return "jpeg";
    case Format::Png:
      return "png";
    case Format::WebP:
      return "webp";
    case Format::Gif:
      return "gif";
    case Format::Bmp:
      return "bmp";
    case Format::Tiff:
      return "tiff";
  }
  return "unknown";
}

Header read_header(ByteView encoded) {
  for (const Signature& known : kSignatures) {
    if (starts_with(encoded, known.prefix)) return judged(known.read(encoded), known.format);
  }
  if (is_other_image(encoded))
    return UnknownImage{"the router does not read the size of this format"};
  return client_error(
      ErrorCode::InvalidArgument,
      "the bytes are not an image in a format that the engine reads. Send JPEG, PNG, "
      "WebP, GIF, BMP or TIFF");
}

}  // namespace sightline::image
