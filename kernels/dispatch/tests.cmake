omni_test(NAME registry_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/dispatch/registry_test.cc)
omni_test(NAME select_linear_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/dispatch/select_linear_test.cc)
