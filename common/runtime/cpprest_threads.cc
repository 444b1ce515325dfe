// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/cpprest_threads.h"

#include <cstddef>
#include <mutex>

#include <cpprest/http_msg.h>
#include <pplx/threadpool.h>

namespace sightline::runtime {
namespace {

constexpr std::size_t kThreads = 4;

}  // namespace

void prepare_cpprest() {
  static std::once_flag once;
  std::call_once(once, [] {
    crossplat::threadpool::initialize_with_threads(kThreads);
    pplx::get_ambient_scheduler();
    // The text of a response is made with the table of reason phrases.
    static_cast<void>(web::http::http_response(web::http::status_codes::OK).to_string());
  });
}

}  // namespace sightline::runtime
