// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/zlib_text.h"

#include <algorithm>

// Makes input pointers const.
#define ZLIB_CONST
#include <zlib.h>

namespace sightline::image {

Inflated inflate_text(ByteView deflated, std::size_t bytes_max, std::string& text) {
  text.clear();
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return Inflated::Broken;
  stream.next_in = deflated.data();
  stream.avail_in = static_cast<uInt>(deflated.size());
  int status = Z_OK;
  // Inflates in steps, and so a small stream cannot allocate more memory than its text needs.
  while (status == Z_OK && text.size() < bytes_max) {
    constexpr std::size_t kStep = std::size_t{64} << 10U;
    const std::size_t before = text.size();
    text.resize(std::min(before + kStep, bytes_max));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = static_cast<uInt>(text.size() - before);
    status = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
    // The stream has no more output, although there is room for it.
    if (stream.avail_out != 0) break;
  }
  const bool input_left = stream.avail_in != 0;
  inflateEnd(&stream);
  // Z_BUF_ERROR means that the stream is cut off. Its text counts, as in Python's zlib.
  if (status == Z_STREAM_END || status == Z_BUF_ERROR) return Inflated::Whole;
  if (status != Z_OK) return Inflated::Broken;
  return input_left ? Inflated::TooLarge : Inflated::Whole;
}

std::uint32_t crc32_of(ByteView bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

}  // namespace sightline::image
