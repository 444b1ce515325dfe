// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/passed_paths.h"

#include <algorithm>
#include <array>

namespace sightline::openai {
namespace {

struct PassedPath {
  std::string_view pattern;
  std::string_view methods = "POST";
};

// Left out on purpose: endpoints that load or configure (adapters, files, batches), endpoints for
// an operator (/sleep, /collective_rpc, …), and /inference/v1/generate, in which the client names
// media identifiers.
constexpr std::array kPassedPaths{
    PassedPath{"/v1/responses"},
    PassedPath{"/v1/responses/*", "GET, HEAD, DELETE"},
    PassedPath{"/v1/responses/*/cancel"},
    PassedPath{"/v1/responses/*/input_items", "GET, HEAD"},
    PassedPath{"/v1/messages"},
    PassedPath{"/v1/messages/count_tokens"},
    PassedPath{"/v1/embeddings"},
    PassedPath{"/v1/moderations"},
    PassedPath{"/v1/audio/transcriptions"},
    PassedPath{"/v1/audio/translations"},
    PassedPath{"/v1/audio/speech"},
    PassedPath{"/v1/images/generations"},
    PassedPath{"/v1/images/edits"},
    PassedPath{"/v1/images/variations"},
    PassedPath{"/v1/score"},
    PassedPath{"/score"},
    PassedPath{"/v1/rerank"},
    PassedPath{"/v2/rerank"},
    PassedPath{"/rerank"},
    PassedPath{"/v1/classify"},
    PassedPath{"/classify"},
    PassedPath{"/pooling"},
    PassedPath{"/v1/tokenize"},
    PassedPath{"/tokenize"},
    PassedPath{"/v1/detokenize"},
    PassedPath{"/detokenize"},
};

// Removes and returns the text up to the next slash, and removes the slash.
std::string_view take_segment(std::string_view& text) {
  const std::size_t end = std::min(text.find('/'), text.size());
  const std::string_view segment = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return segment;
}

bool matches(std::string_view path, std::string_view pattern) {
  // Different counts of slashes cannot match, because "*" is one segment.
  if (std::count(path.begin(), path.end(), '/') !=
      std::count(pattern.begin(), pattern.end(), '/')) {
    return false;
  }
  while (!path.empty() || !pattern.empty()) {
    const std::string_view wanted = take_segment(pattern);
    if (take_segment(path) != wanted && wanted != "*") return false;
  }
  return true;
}

}  // namespace

std::string_view passed_methods(std::string_view path, std::span<const std::string> added) {
  for (const PassedPath& passed : kPassedPaths) {
    if (matches(path, passed.pattern)) return passed.methods;
  }
  // Configured patterns come last, so they cannot widen the methods of a known path.
  const bool is_added = std::any_of(added.begin(), added.end(), [path](const std::string& pattern) {
    return matches(path, pattern);
  });
  return is_added ? kAnyMethod : std::string_view{};
}

bool has_method(std::string_view methods, std::string_view method) {
  if (methods == kAnyMethod) return true;
  while (!methods.empty()) {
    const std::size_t end = std::min(methods.find(", "), methods.size());
    if (methods.substr(0, end) == method) return true;
    methods.remove_prefix(std::min(end + 2, methods.size()));
  }
  return false;
}

}  // namespace sightline::openai
