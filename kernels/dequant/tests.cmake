omni_test(NAME dequant_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/dequant/dequant_test.cc ${PROJECT_SOURCE_DIR}/kernels/dequant/tile_test.cc)
