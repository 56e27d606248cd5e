# Debian 12 packages. libcpuinfo's CMake config names a wrong libclog path, so pkg-config finds it; oneDNN's asks for OpenCL
# headers that a CPU build does not need, so bench/ looks the library up itself.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(xbyak REQUIRED CONFIG)
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
pkg_check_modules(cpuinfo REQUIRED IMPORTED_TARGET libcpuinfo)
if(OMNI_BUILD_TOOLS OR OMNI_BUILD_BENCH OR OMNI_BUILD_REFERENCE)
  find_package(CLI11 REQUIRED CONFIG)
  find_package(fmt REQUIRED CONFIG)
endif()
if(OMNI_BUILD_BENCH OR OMNI_BUILD_REFERENCE OR OMNI_BUILD_TESTS)
  find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)  # SHA-256 of golden data and packed models
endif()
if(OMNI_BUILD_TESTS)
  find_package(GTest REQUIRED CONFIG)
endif()
