// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "router/openai/edits.h"
#include "router/openai/request.h"

namespace sightline::openai {

// Parses the body of a chat request. The test fails if the body is refused.
inline ApiRequest parsed_chat(std::string body) {
  auto request = parse_request(Endpoint::Chat, std::move(body), {});
  EXPECT_TRUE(request.ok()) << request.error().message;
  return std::move(request).value();
}

// The pieces as one text. The test fails if size() is not its length.
inline std::string joined(const EditedBody& body) {
  std::string text;
  for (const std::string_view piece : body.pieces()) text += piece;
  EXPECT_EQ(text.size(), body.size());
  return text;
}

}  // namespace sightline::openai
