omni_test(NAME rmsnorm_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/rmsnorm/rmsnorm_test.cc)
omni_test(NAME headnorm_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/rmsnorm/headnorm_test.cc)
omni_test(NAME layernorm_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/rmsnorm/layernorm_test.cc)
