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

// The largest number in messages. Numbers are JSON integers of at most 63 bits.
inline constexpr std::uint64_t kNumberMax = std::numeric_limits<std::int64_t>::max();

// The members of an object from a peer. check() reports the first invalid member. Values read after
// it must not be used. A member with the value null counts as absent.
//
// Not thread-safe. The document must live longer.
class Fields {
 public:
  // `path` is the path of the object, for errors. Empty: the object is the body.
  explicit Fields(json::Value object, std::string path = "");

  // Returns a member, unless it is absent or null.
  [[nodiscard]] std::optional<json::Value> find(std::string_view name) const;

  // Returns a number of at most `max`. Without `otherwise` the member is required.
  std::uint64_t number(std::string_view name, std::uint64_t max,
                       std::optional<std::uint64_t> otherwise = std::nullopt);
  // Returns a required number.
  double real(std::string_view name);
  // Returns a boolean, or `otherwise` if it is absent.
  bool flag(std::string_view name, bool otherwise);
  // Returns a text of at most bytes_max bytes of UTF-8, or nothing for an absent member.
  std::optional<std::string> text(std::string_view name, std::size_t bytes_max);
  // Returns a required text.
  std::string needed_text(std::string_view name, std::size_t bytes_max);
  // Returns an array of at most count_max elements, or nothing for an absent member.
  std::optional<json::Value> list(std::string_view name, std::size_t count_max);

  // Records that a member is invalid. Only the first call has an effect.
  void refuse(std::string_view name, std::string_view why);
  // Returns the recorded error: InvalidArgument, blamed on the client. It names the member and its
  // valid values.
  [[nodiscard]] Result<Done> check() const;

 private:
  json::Value object_;
  std::string path_;
  std::optional<Error> error_;
};

// Parses a body, which must be an object. The body and the document are counted in `memory`, if it
// is not null. Errors: as json::Document::parse(), and InvalidArgument.
Result<json::Document> parse_object(std::string body, HeldBytes* memory = nullptr);

}  // namespace sightline::selection_json
