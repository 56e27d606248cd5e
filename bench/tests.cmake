# omni-bench is a client of the shared library, so its tests link that and not the internal archive.
function(omni_bench_test name)
  add_executable(bench_${name} ${PROJECT_SOURCE_DIR}/bench/${name}.cc)
  target_link_libraries(bench_${name} PRIVATE omni_bench_core GTest::gtest GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(bench_${name} TEST_PREFIX bench_${name}. DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()

if(OMNI_BUILD_BENCH)
  foreach(name stats_test harness_test report_test options_test)
    omni_bench_test(${name})
  endforeach()
endif()
