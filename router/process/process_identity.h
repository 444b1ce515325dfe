// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/contract/identity_key.h"
#include "common/contract/process_settings.h"

namespace sightline::process {

// Returns the key in the file, or the public development key with a warning. Errors:
// InvalidArgument with the flag and the file.
Result<contract::IdentityKey> load_identity(const contract::IdentitySettings& settings);

// Returns all that block keys depend on, as one text. Block keys of two processes are comparable if
// both texts are equal.
std::string keys_identity(const contract::IdentityKey& key, const std::string& model_digest,
                          const std::string& scope_model);

// Returns the configured name, or else host name and port, "host-7:9090". If the port is chosen by
// the system (0), the process id replaces it.
std::string process_name(const std::string& configured, std::uint16_t port);

// Returns a name of this run of the process, for routers at which it reserves. It has the name's
// letters, digits and "._:-", and a random number that no other process has.
std::string instance_name(const std::string& name);

}  // namespace sightline::process
