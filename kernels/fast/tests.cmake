omni_test(NAME fast_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/fast/fast_test.cc LIBRARIES omni_amx_model)
