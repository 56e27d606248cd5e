omni_test(NAME safetensors_test SOURCES ${PROJECT_SOURCE_DIR}/bench/golden/safetensors_test.cc)
