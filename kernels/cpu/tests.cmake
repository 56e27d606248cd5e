omni_test(NAME cpu_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/cpu/cpu_test.cc ${PROJECT_SOURCE_DIR}/kernels/cpu/recorded_cpus.cc)
omni_test(NAME topology_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/cpu/topology_test.cc)
omni_test(NAME profile_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/cpu/profile_test.cc)
omni_test(NAME settings_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/cpu/settings_test.cc)
