omni_test(NAME sandbox_test SOURCES ${PROJECT_SOURCE_DIR}/tests/security/sandbox_test.cc)
omni_test(NAME process_test SOURCES ${PROJECT_SOURCE_DIR}/tests/security/process_test.cc)
