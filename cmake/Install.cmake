# What `cmake --install` leaves behind: the shared library, its headers, a CMake package (find_package(omni_kernels), target
# omni::kernels), a pkg-config file and the programs. Nothing in it names the prefix, so that the tree may be moved.
# The library links its dependencies privately: a client needs none of them to build.

include(CMakePackageConfigHelpers)

function(omni_install)
  set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/omni_kernels)

  install(TARGETS omni_kernels EXPORT omni_kernels LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
                                                   NAMELINK_COMPONENT development)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/include/omni DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
          FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

  install(EXPORT omni_kernels NAMESPACE omni:: FILE omni_kernels-targets.cmake DESTINATION ${_package_dir} COMPONENT development)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/omni_kernels-config.cmake.in
                                ${PROJECT_BINARY_DIR}/omni_kernels-config.cmake INSTALL_DESTINATION ${_package_dir}
                                NO_SET_AND_CHECK_MACRO)
  # Before 1.0 every minor version may break the interface.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/omni_kernels-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/omni_kernels-config.cmake ${PROJECT_BINARY_DIR}/omni_kernels-config-version.cmake
          DESTINATION ${_package_dir} COMPONENT development)

  file(RELATIVE_PATH _pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" _pc_to_prefix ${_pc_to_prefix})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/omni-kernels.pc.in ${PROJECT_BINARY_DIR}/omni-kernels.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/omni-kernels.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

  file(RELATIVE_PATH _bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  foreach(_program omni-probe omni-bench omni-pack)
    if(TARGET ${_program})
      set_target_properties(${_program} PROPERTIES INSTALL_RPATH "$ORIGIN/${_bin_to_lib}")
      install(TARGETS ${_program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
    endif()
  endforeach()
endfunction()
