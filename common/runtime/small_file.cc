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

constexpr std::size_t kReadBytes = 4096;

Error unusable(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

Error unreadable() { return unusable(std::string("cannot be read: ") + std::strerror(errno)); }

// The file may grow while it is read: the bound holds for what comes, not for what fstat said.
Result<std::string> read_from(int descriptor, std::size_t bytes_max) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) return unreadable();
  if (!S_ISREG(facts.st_mode)) return unusable("is no regular file");
  std::string content;
  while (content.size() <= bytes_max) {
    const std::size_t size = content.size();
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
  // Opening a pipe or a device must not wait for anybody.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return unreadable();
  auto content = read_from(descriptor, bytes_max);
  ::close(descriptor);
  return content;
}

}  // namespace sightline::runtime
