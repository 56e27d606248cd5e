omni_test(NAME headgate_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/headgate/headgate_test.cc)
