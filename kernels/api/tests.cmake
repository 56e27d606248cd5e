omni_test(NAME jit_api_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/api/jit_test.cc)
