omni_test(NAME dense_pack_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemm/dense_pack_test.cc)
omni_test(NAME dense_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemm/dense_test.cc)
omni_test(NAME dense_kernel_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemm/dense_kernel_test.cc)
omni_test(NAME exact_modelled_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemm/exact_modelled_test.cc LIBRARIES omni_amx_model)
omni_test(NAME exact_test SOURCES ${PROJECT_SOURCE_DIR}/kernels/gemm/exact_test.cc
          ${PROJECT_SOURCE_DIR}/kernels/gemm/exact_cases_test.cc ${PROJECT_SOURCE_DIR}/kernels/gemm/exact_golden_test.cc ${PROJECT_SOURCE_DIR}/kernels/gemm/exact_abi_test.cc)
