// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/https/cpprest_threads.h"

#include <cstddef>
#include <mutex>
#include <utility>  // which a header of the library forgets

#include <pplx/pplxtasks.h>
#include <pplx/threadpool.h>

namespace sightline::https {
namespace {

constexpr std::size_t kThreads = 4;

}  // namespace

void prepare_cpprest() {
  static std::once_flag once;
  std::call_once(once, [] {
    crossplat::threadpool::initialize_with_threads(kThreads);
    pplx::get_ambient_scheduler();
  });
}

}  // namespace sightline::https
