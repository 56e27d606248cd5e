omni_test(NAME repack_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/repack/repack_test.cc ${PROJECT_SOURCE_DIR}/kernels/repack/scales_test.cc)
omni_test(NAME repack_golden_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/repack/golden_test.cc)
