include(GNUInstallDirs)

# One object library holds kernels/ and jit/. The shared library exports omni.map's symbols from it; tests link the same objects
# as an archive, so that they can reach internals.

add_library(omni_compile_flags INTERFACE)
target_compile_features(omni_compile_flags INTERFACE cxx_std_20)
# No contraction: docs/numerics.md says where a fused multiply-add stands. No ISA flags here: see omni_leaf_sources().
target_compile_options(omni_compile_flags INTERFACE -ffp-contract=off -Wall -Wextra -Werror)
target_include_directories(omni_compile_flags INTERFACE ${PROJECT_SOURCE_DIR})

add_library(omni_objects OBJECT)
set_target_properties(omni_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                              C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_link_libraries(omni_objects PRIVATE omni_compile_flags xbyak::xbyak nlohmann_json::nlohmann_json PkgConfig::cpuinfo
                                           Threads::Threads)
target_include_directories(omni_objects PRIVATE ${PROJECT_SOURCE_DIR}/kernels/include)

# Headers that most sources of programs and tests read, parsed once for each target that asks: two to three seconds of each source.
# They are no reason to leave out an #include; `./dev lint` builds without. The library does without, too: what is compiled for one ISA
# may see nothing of the standard library, and the rest is quick. CLI11 gains nothing that way: its time is not the parser's.
set(OMNI_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <map> <memory> <optional>
                        <random> <span> <string> <string_view> <vector>)
function(omni_common_headers target)
  target_precompile_headers(${target} PRIVATE ${OMNI_COMMON_HEADERS} ${ARGN})
  omni_trust_strings(${target})
endfunction()

# GCC 12 takes std::string's operator+ for a write out of bounds (its bug 105329), and says so where <string> was precompiled.
function(omni_trust_strings target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(${target} PRIVATE -Wno-array-bounds)
  endif()
endfunction()

# What a program does once, with options and text: -O1 is half the time of -O3 there, most of it CLI11's.
function(omni_front_end target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Tests share the headers of one target: `carrier`, which is made with the first of them and has the headers that follow, too.
# FRONT_END: they are compiled as a front end is.
function(omni_test_headers test carrier)
  cmake_parse_arguments(arg "FRONT_END" "" "" ${ARGN})
  if(NOT TARGET ${carrier})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${carrier}.cc CONTENT "// Carries the precompiled headers of tests.\n")
    add_library(${carrier} OBJECT ${PROJECT_BINARY_DIR}/${carrier}.cc)
    target_link_libraries(${carrier} PRIVATE omni_compile_flags nlohmann_json::nlohmann_json GTest::gtest)
    omni_common_headers(${carrier} <gtest/gtest.h> ${arg_UNPARSED_ARGUMENTS})
    if(arg_FRONT_END)
      omni_front_end(${carrier})
    endif()
  endif()
  target_precompile_headers(${test} REUSE_FROM ${carrier})
  omni_trust_strings(${test})
  if(arg_FRONT_END)
    omni_front_end(${test})
  endif()
endfunction()

# Sources compiled for one ISA: leaf functions only, no static initialisers and no inline functions of the standard library (their
# merged copies could be picked for callers on any machine). tests/abi checks the objects.
# omni_leaf_sources([TARGET target] FLAGS ... SOURCES ...), by default of the library.
function(omni_leaf_sources)
  cmake_parse_arguments(arg "" "TARGET" "FLAGS;SOURCES" ${ARGN})
  if(NOT arg_TARGET)
    set(arg_TARGET omni_objects)
  endif()
  target_sources(${arg_TARGET} PRIVATE ${arg_SOURCES})
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE _paths)
  set_property(SOURCE ${_paths} TARGET_DIRECTORY ${arg_TARGET} APPEND PROPERTY COMPILE_OPTIONS ${arg_FLAGS})
  set_property(SOURCE ${_paths} TARGET_DIRECTORY ${arg_TARGET} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  set_property(GLOBAL APPEND PROPERTY OMNI_LEAF_SOURCES ${_paths})
endfunction()

function(omni_finish_library)
  add_library(omni_kernels SHARED)
  add_library(omni::kernels ALIAS omni_kernels)
  set_target_properties(omni_kernels PROPERTIES OUTPUT_NAME omnikernels VERSION ${PROJECT_VERSION}
                                                SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME kernels LINKER_LANGUAGE CXX
                                                LINK_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/api/omni.map)
  target_link_libraries(omni_kernels PRIVATE $<BUILD_INTERFACE:omni_objects> PkgConfig::cpuinfo Threads::Threads)
  target_link_options(omni_kernels PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/kernels/api/omni.map -Wl,--no-undefined
                      -Wl,-z,nodelete)  # worker threads and generated code outlive a dlclose()
  target_include_directories(omni_kernels PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/kernels/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  add_library(omni_internal STATIC)
  set_target_properties(omni_internal PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(omni_internal PUBLIC omni_objects omni_compile_flags PkgConfig::cpuinfo Threads::Threads xbyak::xbyak
                                             nlohmann_json::nlohmann_json)
  target_include_directories(omni_internal PUBLIC ${PROJECT_SOURCE_DIR}/kernels/include)
endfunction()

# omni_test(NAME name SOURCES a.cc ... [LIBRARIES lib ...] [LABELS label ...] [ENVIRONMENT VAR=value ...] [SERIAL]): one GoogleTest
# program; every test of it is a ctest test, and GTEST_SKIP shows as skipped. SERIAL: its tests need the machine to themselves
# (memory, thread counts).
function(omni_test)
  cmake_parse_arguments(arg "SERIAL" "NAME" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_compile_definitions(${arg_NAME} PRIVATE OMNI_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${arg_NAME} PRIVATE omni_internal omni_files GTest::gtest GTest::gtest_main ${arg_LIBRARIES})
  omni_test_headers(${arg_NAME} omni_test_headers)
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  # gtest_discover_tests() drops empty values, and the next name would become the value: so only what is set.
  set(_properties TIMEOUT 600 RUN_SERIAL ${arg_SERIAL})
  foreach(_property LABELS ENVIRONMENT)
    if(arg_${_property})
      list(APPEND _properties ${_property} "${arg_${_property}}")
    endif()
  endforeach()
  include(GoogleTest)
  gtest_discover_tests(${arg_NAME} TEST_PREFIX ${arg_NAME}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES ${_properties})
endfunction()

# omni_script_test(NAME name COMMAND interpreter script ...): exit code 77 is a skip, with the reason on stdout. A missing interpreter
# is a skip too: building needs none.
function(omni_script_test)
  cmake_parse_arguments(arg "" "NAME" "COMMAND" ${ARGN})
  list(GET arg_COMMAND 0 _interpreter)
  find_program(OMNI_${_interpreter} ${_interpreter})
  if(OMNI_${_interpreter})
    add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND})
  else()
    add_test(NAME ${arg_NAME} COMMAND sh -c "echo 'skipped: ${_interpreter} is not installed'; exit 77")
  endif()
  set_tests_properties(${arg_NAME} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()
