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

inline ApiRequest parsed_chat(std::string body) {
  auto request = parse_request(Endpoint::Chat, std::move(body), {});
  EXPECT_TRUE(request.ok()) << request.error().message;
  return std::move(request).value();
}

inline std::string joined(const EditedBody& body) {
  std::string text;
  for (const std::string_view piece : body.pieces()) text += piece;
  EXPECT_EQ(text.size(), body.size());
  return text;
}

}  // namespace sightline::openai
