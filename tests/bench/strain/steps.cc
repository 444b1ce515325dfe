// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Measures how long the threads of an unchanged program go without a look at their sockets. The
// library is preloaded and replaces epoll_wait(). It takes the time from the return of one call to
// the next call: wall time and CPU time of the thread. The results are in a file that the measuring
// script maps too (SL_STEPS_FILE). For each thread it has the name and the longest step so far. The
// script may set the step to zero at any time.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr std::size_t kThreadsMax = 128;

struct Slot {
  char name[16];
  std::atomic<std::uint64_t> cpu_ns;
  std::atomic<std::uint64_t> wall_ns;
  std::atomic<std::uint64_t> steps;
};
static_assert(sizeof(Slot) == 40);

Slot* map_slots() {
  const char* path = std::getenv("SL_STEPS_FILE");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, kThreadsMax * sizeof(Slot)) != 0) return nullptr;
  void* memory =
      ::mmap(nullptr, kThreadsMax * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Slot*>(memory);
}

Slot* slot_of_this_thread() {
  static Slot* const slots = map_slots();
  static std::atomic<std::size_t> taken{0};
  if (slots == nullptr) return nullptr;
  const std::size_t mine = taken.fetch_add(1);
  if (mine >= kThreadsMax) return nullptr;
  pthread_getname_np(pthread_self(), slots[mine].name, sizeof(Slot::name));
  return &slots[mine];
}

std::uint64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  if (value > most.load(std::memory_order_relaxed)) most.store(value, std::memory_order_relaxed);
}

struct Begun {
  Slot* slot = slot_of_this_thread();
  bool is_step = false;
  std::uint64_t cpu_ns = 0;
  std::uint64_t wall_ns = 0;
};

}  // namespace

extern "C" int epoll_wait(int epoll, epoll_event* events, int events_max, int timeout_ms) {
  using Call = int (*)(int, epoll_event*, int, int);
  static const auto wait = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "epoll_wait"));
  thread_local Begun begun;
  if (begun.slot != nullptr && begun.is_step) {
    raise_to(begun.slot->cpu_ns, now_ns(CLOCK_THREAD_CPUTIME_ID) - begun.cpu_ns);
    raise_to(begun.slot->wall_ns, now_ns(CLOCK_MONOTONIC) - begun.wall_ns);
    begun.slot->steps.fetch_add(1, std::memory_order_relaxed);
  }
  const int got = wait(epoll, events, events_max, timeout_ms);
  if (begun.slot != nullptr) {
    begun.is_step = true;
    begun.cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    begun.wall_ns = now_ns(CLOCK_MONOTONIC);
  }
  return got;
}
