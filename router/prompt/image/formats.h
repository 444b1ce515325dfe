// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

// One reader per format, used by read_header alone. Each is given bytes that begin with its
// format's signature; each follows Pillow's plugin of that name, refusals included.
namespace sightline::image {

// Size after orientation. A doubt (static text) makes the picture Unknown.
struct Measured {
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::string_view doubt = {};
};

Result<Measured> read_jpeg(ByteView encoded);
Result<Measured> read_png(ByteView encoded);
Result<Measured> read_webp(ByteView encoded);
Result<Measured> read_gif(ByteView encoded);
// BMP with its file header, or a bare DIB header.
Result<Measured> read_bmp(ByteView encoded);
Result<Measured> read_dib(ByteView encoded);
Result<Measured> read_tiff(ByteView encoded);

// The client's error for a file that breaks its format.
inline Error broken(std::string_view what) {
  return client_error(ErrorCode::InvalidArgument, "the image cannot be read: " + std::string(what));
}

inline bool starts_with(ByteView bytes, std::string_view prefix) {
  return text_of(bytes).starts_with(prefix);
}

// Reads forward through bytes; never past their end.
class Cursor {
 public:
  explicit Cursor(ByteView bytes) : bytes_(bytes) {}

  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }
  // The next byte; nothing at the end.
  std::optional<std::uint8_t> byte() {
    if (left() == 0) return std::nullopt;
    return bytes_[at_++];
  }
  // Exactly count bytes, or nothing (and the position stays).
  std::optional<ByteView> take(std::uint64_t count) {
    if (count > left()) return std::nullopt;
    const ByteView taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  // Up to count bytes.
  ByteView take_up_to(std::size_t count) { return *take(count < left() ? count : left()); }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
};

}  // namespace sightline::image
