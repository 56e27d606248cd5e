omni_test(NAME gather_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gather/gather_test.cc)
