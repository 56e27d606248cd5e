omni_test(NAME quantize_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/quantize/quantize_test.cc)
