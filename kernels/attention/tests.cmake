omni_test(NAME attention_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/attention/attention_test.cc)
