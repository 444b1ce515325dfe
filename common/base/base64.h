// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"

namespace sightline {

// RFC 4648 base64, standard alphabet with padding: of small texts, as in Secrets and kubeconfigs.
std::string to_base64(ByteView bytes);
// Line ends are skipped. Nothing: it is none.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace sightline
