omni_test(NAME rope_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/rope/rope_test.cc)
