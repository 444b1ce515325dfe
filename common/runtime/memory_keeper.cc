// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/memory_keeper.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <new>
#include <string>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/small_file.h"
#include "common/runtime/worker_thread.h"

namespace sightline::runtime {
namespace {

constexpr std::chrono::seconds kInterval{1};
// A search for freed memory holds each of the allocator's locks for a while. Two limits say when it
// is worth it. Both apply to the growth of resident memory beyond the charged bytes and beyond what
// remained after the last search:
// - growth of at least kSlackBytes in one look
// - a sum of kSummedBytes over the looks since then, so 24 MiB wait for four looks
//
// Growth above 1/kUrgentPart of the limit starts a search immediately.
constexpr std::size_t kSlackBytes = std::size_t{8} << 20U;
constexpr std::size_t kSummedBytes = std::size_t{96} << 20U;
constexpr std::size_t kUrgentPart = 16;
constexpr std::size_t kStatmBytesMax = 4096;
// Address space only, without memory behind it.
constexpr std::size_t kHeldBackBytes = std::size_t{32} << 20U;

std::atomic<void*> held_back = nullptr;

// PROT_NONE and NORESERVE: the mapping counts against address space limits, but uses no memory.
void hold_back() {
  if (held_back.load() != nullptr) return;
  void* const space = ::mmap(nullptr, kHeldBackBytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space != MAP_FAILED) held_back.store(space);
}

// The new-handler: operator new calls it when it gets no memory. It frees the reserve once, and
// operator new tries again. Without a handler operator new throws std::bad_alloc.
void give_way() {
  void* const space = held_back.exchange(nullptr);
  if (space == nullptr) {
    std::set_new_handler(nullptr);
    return;
  }
  ::munmap(space, kHeldBackBytes);
}

// The resident bytes of this process: the second number of /proc/self/statm, in pages (proc(5)).
std::size_t resident_bytes() {
  const auto text = read_small_file("/proc/self/statm", kStatmBytesMax);
  if (!text.ok()) return 0;
  const std::size_t at = text->find(' ') + 1;
  std::size_t pages = 0;
  std::from_chars(text->data() + at, text->data() + text->size(), pages);
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void tune_allocator() {
  // By default glibc adapts the threshold: after the first large block was freed, it would keep
  // blocks of up to 32 MiB.
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(kOwnMappingBytes));
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(2 * kOwnMappingBytes));
}

struct MemoryKeeper::State {
  explicit State(const ByteBudget& budget) : whole(budget) {}

  void look();
  [[nodiscard]] std::size_t beyond() const {
    const std::size_t resident = resident_bytes();
    return resident - std::min(resident, whole.held());
  }

  const ByteBudget& whole;
  std::size_t summed = 0;  // growth since the last search
  std::size_t stayed = 0;  // the smallest recent excess over the charged bytes
  Mutex mutex;
  StopCondVar changed;
  std::unique_ptr<WorkerThread> thread;
};

void MemoryKeeper::State::look() {
  // Again at each look, because an allocation failure uses the reserve up.
  hold_back();
  std::set_new_handler(give_way);
  const std::size_t before = beyond();
  stayed = stayed == 0 ? before : std::min(stayed, before);
  const std::size_t grown = before - stayed;
  if (grown < kSlackBytes) return;
  summed += grown;
  const bool is_urgent = grown > std::max(kSlackBytes, whole.bytes_max() / kUrgentPart);
  if (summed < kSummedBytes && !is_urgent) return;
  summed = 0;
  malloc_trim(0);
  stayed = beyond();
}

MemoryKeeper::MemoryKeeper(const ByteBudget& whole) : state_(std::make_unique<State>(whole)) {
  State* const state = state_.get();
  // On this thread, so the reserve exists before requests come.
  state->look();
  state->thread = std::make_unique<WorkerThread>("memory", [state](std::stop_token stop) {
    while (!stop.stop_requested()) {
      {
        const MutexLock lock(state->mutex);
        state->changed.wait_until(state->mutex, stop, system_clock().now() + kInterval,
                                  [] { return false; });
      }
      // look() may itself find no memory.
      run_step([state] { state->look(); });
    }
  });
}

MemoryKeeper::~MemoryKeeper() {
  // The thread would set the handler again.
  state_->thread.reset();
  std::set_new_handler(nullptr);
  give_way();
}

}  // namespace sightline::runtime
