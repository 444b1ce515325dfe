# Language level, warnings, sanitizers and build speed, for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(THREADS_PREFER_PTHREAD_FLAG ON)

set(SL_SANITIZE "" CACHE STRING "Sanitizers: address;undefined or thread, empty for none")
option(SL_FUZZ "Programs of libFuzzer in place of the replays of their corpora (needs clang)" OFF)

option(SL_BATCHES "Compile up to ten sources of a target as one (cmake/unity.cmake)" OFF)

find_program(SL_CCACHE ccache)
if(SL_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the source tree: all checkouts on a machine share what is cached.
  set(sl_ccache ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${SL_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${sl_ccache})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${sl_ccache})
endif()
find_program(SL_MOLD mold)
if(SL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# AVX2 is the baseline: simdjson's on-demand parser and the tokenizer's scanner choose their
# instruction set at compile time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
  set(SL_ARCH x86-64-v3 CACHE STRING "Instruction set of the machines this build runs on")
  add_compile_options(-march=${SL_ARCH})
endif()
add_compile_options(-fno-omit-frame-pointer)
# The same programs from every folder: releases of one commit are equal. ccache names files from the
# build directory.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=../../=)
endif()
if(SL_SANITIZE)
  string(REPLACE ";" "," sl_sanitize_list "${SL_SANITIZE}")
  add_compile_options(-fsanitize=${sl_sanitize_list} -fno-sanitize-recover=all)
  if(SL_SANITIZE MATCHES "address")
    # What AddressSanitizer finds as well; a quarter of the compile time.
    add_compile_options(-fno-sanitize=null,object-size,vptr)
  endif()
  add_link_options(-fsanitize=${sl_sanitize_list})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fno-sanitize=function -Wno-unknown-warning-option)
  endif()
endif()
if(SL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Own code only: third-party headers are SYSTEM includes and do not see these.
add_library(sl_warnings INTERFACE)
target_compile_options(sl_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    -Woverloaded-virtual -Wno-missing-field-initializers -Werror>
  # False positives of g++ 12 on operator+(const char*, std::string) (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(SL_BATCHES AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Of sources that are compiled together, g++ 12 takes all but the first for headers, and their
  # constants for outer scopes. With a precompiled header it takes strings for as long as their type
  # allows (GCC bug 105651).
  target_compile_options(sl_warnings INTERFACE
    -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage -Wno-shadow>)
endif()
if(SL_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Instrumented, g++ 12 takes sound code for uses of uninitialised values, and the frames of
  # Asio's coroutines for freed by another operator than they came from.
  target_compile_options(sl_warnings INTERFACE
    -Wno-maybe-uninitialized $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
endif()
