// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/byte_budget.h"
#include "common/base/json.h"
#include "common/base/result.h"

namespace sightline::selection_json {

// Numbers on the wire are JSON integers of at most 63 bits.
inline constexpr std::uint64_t kNumberMax = std::numeric_limits<std::int64_t>::max();

// The members of an object that a peer sent. The first one that is not as it should be is kept and
// told by check(); what is read after it is not to be used. A member that is null is not there.
// Thread safety: none. The document outlives it.
class Fields {
 public:
  // path: of the object, for errors; empty: it is the body.
  explicit Fields(json::Value object, std::string path = "");

  [[nodiscard]] std::optional<json::Value> find(std::string_view name) const;

  // A number of at most `max`; without `otherwise` it must be there.
  std::uint64_t number(std::string_view name, std::uint64_t max,
                       std::optional<std::uint64_t> otherwise = std::nullopt);
  double real(std::string_view name);
  bool flag(std::string_view name, bool otherwise);
  // At most bytes_max of UTF-8.
  std::optional<std::string> text(std::string_view name, std::size_t bytes_max);
  std::string needed_text(std::string_view name, std::size_t bytes_max);
  // The elements of an array of at most count_max, nothing if it is not there.
  std::optional<json::Value> list(std::string_view name, std::size_t count_max);

  void refuse(std::string_view name, std::string_view why);
  // Error: InvalidArgument, the client's; names the member and what it must be.
  [[nodiscard]] Result<Done> check() const;

 private:
  json::Value object_;
  std::string path_;
  std::optional<Error> error_;
};

// Parses a body that must be an object. It and the document are charged to `memory`; null: to
// nothing. Errors: as json::Document::parse(); InvalidArgument.
Result<json::Document> parse_object(std::string body, HeldBytes* memory = nullptr);

}  // namespace sightline::selection_json
