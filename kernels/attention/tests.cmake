omni_test(NAME attention_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/attention/attention_test.cc)
omni_test(NAME attention_api_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/attention/attention_api_test.cc)
omni_test(NAME attention_oracle_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/attention/attention_oracle_test.cc)
