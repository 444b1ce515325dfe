// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/contract/identity_key.h"
#include "common/contract/process_settings.h"

namespace sightline::process {

// The key of the file, or the development key, with a warning. Errors: InvalidArgument, which names
// the flag and the file.
Result<contract::IdentityKey> load_identity(const contract::IdentitySettings& settings);

// All that block keys depend on, as one text: keys of one process mean something in another if both
// have the same.
std::string keys_identity(const contract::IdentityKey& key, const std::string& model_digest,
                          const std::string& scope_model);

// The configured name, or host name and port, "host-7:9090"; where the port is any free one, the
// process's number stands for it.
std::string process_name(const std::string& configured, std::uint16_t port);

// A name of this start of the process for those it reserves at: the letters, digits and "._:-" of
// its name, and a number that nobody else has.
std::string instance_name(const std::string& name);

}  // namespace sightline::process
