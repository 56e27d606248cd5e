# Installs the build tree, moves the result (a prefix written into it would now be wrong), builds the clients and runs them.
function(run)
  cmake_parse_arguments(arg "" "OUTPUT" "COMMAND;ENVIRONMENT" ${ARGN})
  list(JOIN arg_COMMAND " " _line)
  message(STATUS "${_line}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${arg_ENVIRONMENT} ${arg_COMMAND} RESULT_VARIABLE _result OUTPUT_VARIABLE _output
                  ERROR_VARIABLE _output)
  if(NOT _result STREQUAL "0")
    message(FATAL_ERROR "${_line}\n${_output}\nresult: ${_result}")
  endif()
  if(arg_OUTPUT)
    string(STRIP "${_output}" _output)
    set(${arg_OUTPUT} "${_output}" PARENT_SCOPE)
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
run(COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/staged)
set(_prefix ${WORK_DIR}/prefix)
file(RENAME ${WORK_DIR}/staged ${_prefix})
set(_example ${SOURCE_DIR}/docs/examples/gemv.c)

# find_package. C and C++ flags: the sanitizers of the build, which the clients must share.
run(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/client -B ${WORK_DIR}/client -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${_prefix}
            -D WANTED_VERSION=${VERSION} -D EXAMPLE=${_example} -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
            "-DCMAKE_C_FLAGS=${C_FLAGS} -Wall -Wextra -Werror" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS} -Wall -Wextra -Werror")
run(COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR}/client)
foreach(_program gemv_c wrapper_cpp)
  run(COMMAND ${WORK_DIR}/client/${_program} OUTPUT _text)
  message(STATUS "${_text}")
endforeach()
# The wanted version must matter.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/client -B ${WORK_DIR}/too_new -G ${GENERATOR}
                        -D CMAKE_PREFIX_PATH=${_prefix} -D WANTED_VERSION=999.0 -D EXAMPLE=${_example}
                RESULT_VARIABLE _result OUTPUT_QUIET ERROR_QUIET)
if(_result STREQUAL "0")
  message(FATAL_ERROR "find_package(omni_kernels 999.0) succeeded")
endif()

# pkg-config and the compiler alone.
set(_pkg_config ENVIRONMENT PKG_CONFIG_PATH=${_prefix}/${LIBDIR}/pkgconfig)
run(COMMAND pkg-config --cflags --libs omni-kernels ${_pkg_config} OUTPUT _flags)
run(COMMAND pkg-config --modversion omni-kernels ${_pkg_config} OUTPUT _version)
if(NOT _version STREQUAL VERSION)
  message(FATAL_ERROR "pkg-config says version ${_version}, the build ${VERSION}")
endif()
separate_arguments(_flags UNIX_COMMAND "${_flags}")
separate_arguments(_c_flags UNIX_COMMAND "${C_FLAGS}")
run(COMMAND ${C_COMPILER} -std=c11 -pedantic -Wall -Wextra -Werror ${_c_flags} ${_example} -o ${WORK_DIR}/gemv_pc ${_flags})
run(COMMAND ${WORK_DIR}/gemv_pc ENVIRONMENT LD_LIBRARY_PATH=${_prefix}/${LIBDIR} OUTPUT _text)
message(STATUS "${_text}")

# SOVERSION: programs ask for libomnikernels.so.<major>.
string(REGEX MATCH "^[0-9]+" _major ${VERSION})
run(COMMAND objdump -p ${WORK_DIR}/gemv_pc OUTPUT _text)
if(NOT _text MATCHES "NEEDED +libomnikernels\\.so\\.${_major}\n")
  message(FATAL_ERROR "the example does not need libomnikernels.so.${_major}:\n${_text}")
endif()
