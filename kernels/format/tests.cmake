omni_test(NAME format_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/format/tg4_test.cc ${PROJECT_SOURCE_DIR}/kernels/format/layout_test.cc
          ${PROJECT_SOURCE_DIR}/kernels/format/bf16_test.cc)
