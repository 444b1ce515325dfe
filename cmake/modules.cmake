# One module = one directory = one namespace = one target `sightline_<name>`.

# Adds each directory of the list; the order is the layering.
function(sl_add_modules)
  foreach(directory IN LISTS ARGN)
    if(EXISTS ${CMAKE_SOURCE_DIR}/${directory}/CMakeLists.txt)
      add_subdirectory(${directory})
    endif()
  endforeach()
endfunction()

# sl_module(<name> [DEPS module…] [LIBS third-party target…])
# Sources are all *.cc and *.c of the calling directory. DEPS are other modules (their headers are
# visible), LIBS are private: a third-party type may not appear in a public header unless the
# module is listed for it in hack/lint/modules.txt.
function(sl_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  set(target sightline_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE sl_warnings ${ARG_LIBS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(sightline::${name} ALIAS ${target})
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} ${scope} sightline::${dep})
  endforeach()
endfunction()

# Everything that tests run: test programs (their data with them) and products.
add_custom_target(tested)

# sl_test(<name> DEPS module… [LIBS …] [LABELS …] [SOURCES …]): one GoogleTest binary `test_<name>`
# from all *_test.cc below the calling directory. A skipped test fails the run: a test that can
# not run here must be registered elsewhere, not skipped.
function(sl_test name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;LABELS;SOURCES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *_test.cc)
  set(target test_${name})
  add_executable(${target} ${sources} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE
    SL_SOURCE_DIR="${CMAKE_SOURCE_DIR}" SL_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${target} PRIVATE sl_warnings GTest::gtest_main ${ARG_LIBS})
  # Test bodies run once: compiling them at -O3 costs a quarter more time and buys nothing.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE sightline::${dep})
  endforeach()
  add_dependencies(tested ${target})
  add_test(NAME ${name} COMMAND ${target} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES
    TIMEOUT 300 FAIL_REGULAR_EXPRESSION "SKIPPED" LABELS "${ARG_LABELS}")
endfunction()

# sl_bench(<name> DEPS module… [LIBS …] SOURCES …): one Google Benchmark program `bench_<name>`.
# `make bench` runs all of them; a source without main() gets Google Benchmark's.
function(sl_bench name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;SOURCES" ${ARGN})
  set(target bench_${name})
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE
    SL_SOURCE_DIR="${CMAKE_SOURCE_DIR}" SL_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${target} PRIVATE sl_warnings benchmark::benchmark_main ${ARG_LIBS})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE sightline::${dep})
  endforeach()
endfunction()
