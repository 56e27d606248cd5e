omni_test(NAME registry_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/dispatch/registry_test.cc)
