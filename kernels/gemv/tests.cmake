omni_test(NAME linear_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemv/linear_test.cc)
