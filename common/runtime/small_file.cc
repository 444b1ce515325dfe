// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/small_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sightline::runtime {
namespace {

// Most files fit into one read.
constexpr std::size_t kReadBytes = 4096;

Error unusable(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

Error unreadable() { return unusable(std::string("cannot be read: ") + std::strerror(errno)); }

// The file may grow during the read, so the limit applies to the bytes read, not to fstat's size.
Result<std::string> read_from(int descriptor, std::size_t bytes_max) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) return unreadable();
  // A device could deliver bytes without end.
  if (!S_ISREG(facts.st_mode)) return unusable("is not a regular file");
  std::string content;
  while (content.size() <= bytes_max) {
    const std::size_t size = content.size();
    // One byte more than allowed shows that the file is too long.
    content.resize(size + std::min(kReadBytes, bytes_max + 1 - size));
    const ssize_t got = ::read(descriptor, content.data() + size, content.size() - size);
    const int failure = errno;
    content.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && failure == EINTR) continue;
    errno = failure;
    if (got < 0) return unreadable();
    if (got == 0) return content;
  }
  return unusable("is longer than " + std::to_string(bytes_max) + " bytes");
}

}  // namespace

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max) {
  // O_NONBLOCK: opening a pipe or a device must not wait for the other side.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return unreadable();
  auto content = read_from(descriptor, bytes_max);
  ::close(descriptor);
  return content;
}

}  // namespace sightline::runtime
