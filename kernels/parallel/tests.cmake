omni_test(NAME parallel_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/parallel/parallel_test.cc)
omni_test(NAME parallel_fork_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/parallel/parallel_fork_test.cc)
omni_test(NAME parallel_api_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/parallel/parallel_api_test.cc)
