omni_test(NAME linear_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemv/linear_test.cc)
omni_test(NAME linear_api_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemv/linear_api_test.cc)
omni_test(NAME linear_abi_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemv/abi_test.cc)
omni_test(NAME bf16_self_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemv/bf16_self_test_test.cc)
