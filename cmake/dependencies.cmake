# Third-party packages (Debian 12), each found once. Link them by these names:
#   Threads::Threads sl::asio sl::beast sl::blake3 sl::xxhash cpprestsdk::cpprest yaml-cpp
#   prometheus-cpp::core spdlog::spdlog PkgConfig::NATS simdjson::simdjson CURL::libcurl PkgConfig::CARES PkgConfig::ZMQ ICU::uc
#   PkgConfig::PCRE2 PNG::PNG JPEG::JPEG PkgConfig::WEBP GTest::gtest_main benchmark::benchmark_main (through sl_bench)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(cpprestsdk REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(ICU 72 REQUIRED COMPONENTS uc)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
# Debian's own CMake file names a library that the package lacks.
pkg_check_modules(NATS REQUIRED IMPORTED_TARGET libnats)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
# What libzmq itself was built with. zmq.h needs none of it, and CMake reads "-isystem DIR" otherwise
# when it runs a second time: all that uses libzmq would be built twice.
set_target_properties(PkgConfig::ZMQ PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_COMPILE_OPTIONS "")
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)

# Standalone Asio. Only ASIO_* macros here: BOOST_ASIO_* would change the ABI that libcpprest uses.
add_library(sl_asio INTERFACE)
add_library(sl::asio ALIAS sl_asio)
target_compile_definitions(sl_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(sl_asio INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_definitions(sl_asio INTERFACE ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE)
endif()
if(SL_SANITIZE MATCHES "thread")
  target_compile_definitions(sl_asio INTERFACE ASIO_DISABLE_FENCED_BLOCK)
endif()

# Header-only packages in the system include path; the targets state who may use them.
add_library(sl_beast INTERFACE)
add_library(sl::beast ALIAS sl_beast)
target_link_libraries(sl_beast INTERFACE Threads::Threads)
add_library(sl_xxhash INTERFACE)
add_library(sl::xxhash ALIAS sl_xxhash)

# BLAKE3: Debian ships the official C sources inside librust-blake3-dev.
file(GLOB sl_blake3_dir /usr/share/cargo/registry/blake3-*/c)
if(NOT sl_blake3_dir)
  message(FATAL_ERROR "BLAKE3 C sources not found: run hack/setup (package librust-blake3-dev)")
endif()
set(sl_blake3_sources ${sl_blake3_dir}/blake3.c ${sl_blake3_dir}/blake3_dispatch.c
  ${sl_blake3_dir}/blake3_portable.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
  foreach(isa sse2 sse41 avx2 avx512)
    list(APPEND sl_blake3_sources ${sl_blake3_dir}/blake3_${isa}_x86-64_unix.S)
  endforeach()
endif()
add_library(sl_blake3 STATIC ${sl_blake3_sources})
target_include_directories(sl_blake3 SYSTEM PUBLIC ${sl_blake3_dir})
add_library(sl::blake3 ALIAS sl_blake3)
