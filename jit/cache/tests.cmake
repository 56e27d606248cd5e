omni_test(NAME code_cache_test SOURCES ${PROJECT_SOURCE_DIR}/jit/cache/code_cache_test.cc)
