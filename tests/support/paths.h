// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

// Absolute paths of files that tests read or write. Only paths.cc is compiled with the names of the
// checkout's folders. So ccache's objects of a test fit every checkout on the machine.
namespace sightline::test {

// `path` is relative to the root of the project.
std::string in_sources(std::string_view path);

// `path` is relative to the build directory that the test program was built in.
std::string in_build(std::string_view path);

}  // namespace sightline::test
