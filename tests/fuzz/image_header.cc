// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Reads the size of an image from any bytes.
#include <variant>

#include "common/base/check.h"

#include "router/prompt/image/header.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {

void run(ByteView input) {
  const auto header = image::read_header(input);
  if (const auto* known = std::get_if<image::KnownImage>(&header)) {
    SL_CHECK(known->width > 0 && known->height > 0);
    SL_CHECK(std::uint64_t{known->width} * known->height <= image::kPixelsMax);
    SL_CHECK(!image::name_of(known->format).empty());
    // The function is pure: a copy of the bytes gives the same result.
    const Bytes copy(input.begin(), input.end());
    const auto again = image::read_header(copy);
    const auto* same = std::get_if<image::KnownImage>(&again);
    SL_CHECK(same != nullptr && *same == *known);
  } else if (const auto* error = std::get_if<Error>(&header)) {
    SL_CHECK(error->blame == Blame::Client && !error->message.empty());
  }
}

}  // namespace sightline::fuzz
