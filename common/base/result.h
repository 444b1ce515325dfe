// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/error.h"

namespace sightline {

// Success without a value.
struct Done {};

// A value, or the reason why it is missing: an Error, or another type where callers need to
// distinguish causes. Reading the wrong side is a bug and ends the process (SL_CHECK).
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  // Whether there is a value. If so, value(), * and -> give it.
  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    SL_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    SL_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    SL_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // The reason. Only if ok() is false.
  const E& error() const& {
    SL_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  E&& error() && {
    SL_CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, E> state_;
};

}  // namespace sightline

// The value of a Result. If there is no value, the enclosing function returns the error. Do not use
// it within the braces of an aggregate after another member: g++ 12 and clang 14 leak the members
// that exist by then.
#define SL_TRY(expression)                                    \
  __extension__({                                             \
    auto sl_result = (expression);                            \
    if (!sl_result.ok()) return std::move(sl_result).error(); \
    std::move(sl_result).value();                             \
  })

// The same inside a coroutine. The expression must not contain co_await, because g++ 12 miscompiles
// suspension inside a statement expression. Await into a named Result first.
#define SL_CO_TRY(expression)                                    \
  __extension__({                                                \
    auto sl_result = (expression);                               \
    if (!sl_result.ok()) co_return std::move(sl_result).error(); \
    std::move(sl_result).value();                                \
  })
