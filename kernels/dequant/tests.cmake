omni_test(NAME dequant_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/dequant/dequant_test.cc
          ${PROJECT_SOURCE_DIR}/kernels/dequant/tile_test.cc)
omni_test(NAME refused_jit_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/dequant/refused_jit_test.cc)
