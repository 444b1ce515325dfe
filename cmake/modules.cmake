# One module = one directory = one namespace = one target `sightline_<name>`. One table lists them,
# lowest layer first: the modules whose headers each one includes, and its libraries. Lint compares
# it with the includes.
set(SL_MODULES ${CMAKE_SOURCE_DIR}/hack/lint/modules.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SL_MODULES})

# Adds the module of each row, with its dependencies by name in SL_DEPS. A module with an option
# beside its libraries has a CMakeLists.txt, which calls sl_module(). Sets SL_MODULE_DIRECTORIES.
function(sl_add_modules)
  file(STRINGS ${SL_MODULES} rows REGEX "^[^#]+:")
  set(directories)
  foreach(row IN LISTS rows)
    string(REGEX MATCH "^([^:]+):([^|]*)[|]?(.*)$" matched "${row}")
    set(directory ${CMAKE_MATCH_1})
    set(edges "${CMAKE_MATCH_2}")
    set(libraries "${CMAKE_MATCH_3}")
    string(REGEX MATCHALL "[a-z0-9_]+( |$)" SL_DEPS "${edges}")
    list(TRANSFORM SL_DEPS STRIP)
    string(REGEX MATCHALL "[^ ]+" libraries "${libraries}")
    list(APPEND directories ${directory})
    if(EXISTS ${CMAKE_SOURCE_DIR}/${directory}/CMakeLists.txt)
      add_subdirectory(${directory})
    else()
      get_filename_component(name ${directory} NAME)
      sl_module(${name} IN ${directory} LIBS ${libraries})
    endif()
  endforeach()
  set(SL_MODULE_DIRECTORIES ${directories} PARENT_SCOPE)
endfunction()

# Headers of the standard library that most sources read, compiled once: a fifth of the time that
# builds in batches take. In the others a source that lacks an include fails.
if(SL_BATCHES)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/no_code.cc CONTENT "")
  add_library(sl_module_headers OBJECT ${CMAKE_BINARY_DIR}/no_code.cc)
  target_link_libraries(sl_module_headers PRIVATE sl_warnings)
  target_precompile_headers(sl_module_headers PRIVATE <algorithm> <array> <atomic> <charconv>
    <chrono> <deque> <functional> <map> <memory> <mutex> <optional> <set> <span> <string>
    <string_view> <unordered_map> <utility> <variant> <vector>)
endif()

# What g++ 12 says of moves of a std::variant that holds containers, which Kubernetes objects are
# made of, is wrong; what is read uninitialised, clang-tidy and the sanitizers find.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(SL_OPERATOR_OPTIONS -Wno-maybe-uninitialized)
endif()

# sl_module(<name> [IN directory] [LIBS third-party target…])
# Sources are all *.cc of the directory, by default the calling one. LIBS are private: a third-party
# type may not appear in a public header.
function(sl_module name)
  cmake_parse_arguments(ARG "" "IN" "LIBS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sl_module(${name}): write its dependencies into ${SL_MODULES}")
  endif()
  get_filename_component(directory ./${ARG_IN} ABSOLUTE)
  file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.cc)
  set(target sightline_${name})
  if(sources)
    sl_batches(${target} batches ${sources})
    add_library(${target} STATIC ${batches})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE sl_warnings ${ARG_LIBS})
    if(directory MATCHES "/operator/")
      target_compile_options(${target} PRIVATE ${SL_OPERATOR_OPTIONS})
    endif()
    if(TARGET sl_module_headers)
      target_precompile_headers(${target} REUSE_FROM sl_module_headers)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(sightline::${name} ALIAS ${target})
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR})
  foreach(dep IN LISTS SL_DEPS)
    target_link_libraries(${target} ${scope} sightline::${dep})
  endforeach()
endfunction()

# Test bodies run once: compiling them at -O3 costs a quarter more time and buys nothing, at -O1
# with AddressSanitizer twice that of -O0.
set(SL_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
if(SL_SANITIZE MATCHES "address")
  set(SL_TEST_OPTIONS -O0)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With a precompiled header, g++ 12 tells its false positives on strings (GCC bug 105651) as if
  # the library's code were ours.
  list(APPEND SL_TEST_OPTIONS -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# Ends a test program that hangs; instrumented ones take five times as long (SL_SLOWDOWN).
set(SL_TEST_TIMEOUT_S 300)
if(SL_SANITIZE)
  set(SL_TEST_TIMEOUT_S 1500)
endif()

# Everything that tests run: test programs (their data with them) and products.
add_custom_target(tested)

# sl_test_starts_no_thread(<target> <variable>): such a test aborts when it starts one, and where
# only races are looked for, it is not built with the others; the variable tells whether it is run.
function(sl_test_starts_no_thread target variable)
  target_link_libraries(${target} PRIVATE sl_test_no_threads)
  set(${variable} TRUE PARENT_SCOPE)
  if(SL_SANITIZE MATCHES "thread")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    set(${variable} FALSE PARENT_SCOPE)
  endif()
endfunction()

# sl_test(<name> [IN directory] DEPS module… [LIBS …] [LABELS …] [SOURCES …] [SINGLE_THREAD] [LONG]
#         [THREADED source…]):
# one GoogleTest binary `test_<name>` from all *_test.cc below the directory, by default the calling
# one. Names of sources are relative to it. A skipped test fails the run: register a test that can
# not run here elsewhere.
# SINGLE_THREAD: it starts no thread, which is checked, so that ThreadSanitizer can find nothing.
# LONG: it runs longer than it compiles: optimised with AddressSanitizer as well, which halves that.
# THREADED: the only tests of it that start threads; under ThreadSanitizer it has no others.
function(sl_test name)
  cmake_parse_arguments(ARG "SINGLE_THREAD;LONG" "IN" "DEPS;LIBS;LABELS;SOURCES;THREADED" ${ARGN})
  get_filename_component(directory ./${ARG_IN} ABSOLUTE)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${directory}/*_test.cc)
  if(ARG_THREADED AND SL_SANITIZE MATCHES "thread")
    set(sources)
    list(APPEND ARG_SOURCES ${ARG_THREADED})
  endif()
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${directory} NORMALIZE)
    list(APPEND sources ${source})
  endforeach()
  set(target test_${name})
  sl_batches(${target} batches ${sources})
  add_executable(${target} ${batches})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE sl_warnings sl_test_paths GTest::gtest_main ${ARG_LIBS})
  target_compile_options(${target} PRIVATE ${SL_TEST_OPTIONS})
  if(directory MATCHES "/(operator|kube|fakes)")
    target_compile_options(${target} PRIVATE ${SL_OPERATOR_OPTIONS})
  endif()
  if(ARG_LONG AND SL_SANITIZE MATCHES "address")
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_precompile_headers(${target} REUSE_FROM sl_test_headers)
  endif()
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE sightline::${dep})
  endforeach()
  set(is_run TRUE)
  if(ARG_SINGLE_THREAD)
    sl_test_starts_no_thread(${target} is_run)
  endif()
  if(NOT is_run)
    return()
  endif()
  add_dependencies(tested ${target})
  add_test(NAME ${name} COMMAND ${target} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${SL_TEST_TIMEOUT_S} FAIL_REGULAR_EXPRESSION "SKIPPED" LABELS "${ARG_LABELS}")
endfunction()

# sl_bench(<name> DEPS module… [LIBS …] SOURCES …): one Google Benchmark program `bench_<name>`.
# `make bench` runs all of them; a source without main() gets Google Benchmark's.
function(sl_bench name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;SOURCES" ${ARGN})
  set(target bench_${name})
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE sl_warnings sl_test_paths benchmark::benchmark_main
    ${ARG_LIBS})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE sightline::${dep})
  endforeach()
endfunction()
