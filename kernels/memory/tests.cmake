omni_test(NAME packed_memory_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/memory/packed_memory_test.cc)
