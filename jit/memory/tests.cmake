omni_test(NAME executable_memory_test SOURCES ${PROJECT_SOURCE_DIR}/jit/memory/executable_memory_test.cc)
omni_test(NAME jit_policy_test SOURCES ${PROJECT_SOURCE_DIR}/jit/memory/jit_policy_test.cc)
omni_test(NAME perf_test SOURCES ${PROJECT_SOURCE_DIR}/jit/memory/perf_test.cc)
