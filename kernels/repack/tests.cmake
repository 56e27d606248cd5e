omni_test(NAME repack_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/repack/repack_test.cc)
