// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/image_grid.h"

#include <algorithm>

#include "simulator/processor/python_float.h"

namespace sightline::processor {
namespace {

__extension__ using Wide = unsigned __int128;

// round(side / factor). A half goes to the even number.
std::uint64_t to_nearest(std::uint64_t side, std::uint64_t factor) {
  const std::uint64_t below = side / factor;
  const std::uint64_t twice_rest = side % factor * 2;
  if (twice_rest < factor) return below;
  if (twice_rest > factor) return below + 1;
  return below % 2 == 0 ? below : below + 1;
}

PythonFloat as_float(std::uint64_t number) { return true_division(number, 1); }

// max(factor, floor(side / beta / factor) * factor), divided by the factor.
std::uint64_t shrunk(std::uint64_t side, const PythonFloat& beta, std::uint64_t factor) {
  const PythonFloat pixels = quotient(as_float(side), beta);
  return std::max<std::uint64_t>(1, floor_of(quotient(pixels, as_float(factor))));
}

// ceil(side * beta / factor) * factor, divided by the factor.
std::uint64_t grown(std::uint64_t side, const PythonFloat& beta, std::uint64_t factor) {
  const PythonFloat pixels = product(as_float(side), beta);
  return ceiling_of(quotient(pixels, as_float(factor)));
}

}  // namespace

Result<ImageGrid> grid_of(const ImageSettings& settings, const PictureSize& size) {
  const std::uint64_t height = size.height;
  const std::uint64_t width = size.width;
  if (height == 0 || width == 0) {
    return client_error(ErrorCode::InvalidArgument, "height and width must be > 0");
  }
  if (height > 200 * width || width > 200 * height) {
    return client_error(ErrorCode::InvalidArgument,
                        "absolute aspect ratio must be smaller than 200, got " +
                            std::to_string(width) + " to " + std::to_string(height));
  }
  const std::uint64_t factor = settings.patch_size * settings.merge_size;
  const ImageGrid nearest{to_nearest(height, factor), to_nearest(width, factor)};
  // The area needs more than 64 bits.
  const Wide area = Wide{nearest.rows} * nearest.columns * factor * factor;
  if (area > settings.longest_edge) {
    const PythonFloat beta = square_root(true_division(height * width, settings.longest_edge));
    return ImageGrid{shrunk(height, beta, factor), shrunk(width, beta, factor)};
  }
  if (area < settings.shortest_edge) {
    const PythonFloat beta = square_root(true_division(settings.shortest_edge, height * width));
    return ImageGrid{grown(height, beta, factor), grown(width, beta, factor)};
  }
  return nearest;
}

}  // namespace sightline::processor
