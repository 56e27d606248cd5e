omni_test(NAME gated_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/activation/gated_test.cc)

# The lane functions compiled once per tier. SLEEF (Debian: libsleef-dev) is a second oracle beside libm's double functions.
set(_probe ${PROJECT_SOURCE_DIR}/kernels/activation/lanes_probe)
set_source_files_properties(${_probe}_avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
set_source_files_properties(${_probe}_avx512.cc PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma")
set_source_files_properties(${_probe}_avx512bf16.cc PROPERTIES
                            COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512bf16;-mfma")
set_source_files_properties(${_probe}_avx2.cc ${_probe}_avx512.cc ${_probe}_avx512bf16.cc PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
pkg_check_modules(sleef IMPORTED_TARGET sleef)
set(_sleef "")
if(sleef_FOUND)
  set(_sleef PkgConfig::sleef)
endif()
omni_test(NAME lanes_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/activation/lanes_test.cc ${_probe}_portable.cc
          ${_probe}_avx2.cc ${_probe}_avx512.cc ${_probe}_avx512bf16.cc LIBRARIES ${_sleef})
omni_test(NAME activation_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/activation/activation_test.cc LIBRARIES ${_sleef})
if(sleef_FOUND)
  target_compile_definitions(lanes_test PRIVATE OMNI_HAVE_SLEEF)
  target_compile_definitions(activation_test PRIVATE OMNI_HAVE_SLEEF)
endif()
