// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

// The readers of the formats. Only read_header() uses them. Each gets bytes that begin with the
// signature of its format. Each follows the Pillow plugin of its format, and rejects the files that
// the plugin rejects.
namespace sightline::image {

// The size of an image after orientation, in pixels. With a doubt, which is a static text, the
// image counts as UnknownImage.
struct Measured {
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::string_view doubt = {};
};

// Errors: InvalidArgument, blamed on the client, for files that Pillow rejects.
Result<Measured> read_jpeg(ByteView encoded);
Result<Measured> read_png(ByteView encoded);
Result<Measured> read_webp(ByteView encoded);
Result<Measured> read_gif(ByteView encoded);
// A BMP with its file header, or a bare DIB header.
Result<Measured> read_bmp(ByteView encoded);
Result<Measured> read_dib(ByteView encoded);
Result<Measured> read_tiff(ByteView encoded);

// The error for a file that breaks its format. It blames the client.
inline Error broken(std::string_view what) {
  return client_error(ErrorCode::InvalidArgument, "the image cannot be read: " + std::string(what));
}

inline bool starts_with(ByteView bytes, std::string_view prefix) {
  return text_of(bytes).starts_with(prefix);
}

// Reads bytes in forward direction, and never past their end.
class Cursor {
 public:
  explicit Cursor(ByteView bytes) : bytes_(bytes) {}

  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }
  // Returns the next byte, or nothing at the end.
  std::optional<std::uint8_t> byte() {
    if (left() == 0) return std::nullopt;
    return bytes_[at_++];
  }
  // Returns exactly `count` bytes. If fewer are left, it returns nothing and keeps its position.
  std::optional<ByteView> take(std::uint64_t count) {
    if (count > left()) return std::nullopt;
    const ByteView taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  // Returns `count` bytes, or all bytes that are left.
  ByteView take_up_to(std::size_t count) { return *take(count < left() ? count : left()); }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
};

}  // namespace sightline::image
