omni_test(NAME conv1d_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/conv/conv1d_test.cc ${PROJECT_SOURCE_DIR}/kernels/conv/conv1d_api_test.cc)
omni_test(NAME depthwise_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/conv/depthwise_test.cc)
