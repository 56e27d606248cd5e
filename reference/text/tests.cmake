# The reference decoder is a client of the shared library, so its tests link that and not the internal archive.
if(OMNI_BUILD_REFERENCE)
  add_executable(tokenizer_test ${PROJECT_SOURCE_DIR}/reference/text/tokenizer_test.cc)
  target_compile_definitions(tokenizer_test PRIVATE OMNI_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(tokenizer_test PRIVATE omni_reference GTest::gtest GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(tokenizer_test TEST_PREFIX tokenizer_test. DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endif()
