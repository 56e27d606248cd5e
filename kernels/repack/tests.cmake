set(_here ${PROJECT_SOURCE_DIR}/kernels/repack)
omni_test(NAME repack_test SOURCES ${_here}/repack_test.cc ${_here}/steps_test.cc ${_here}/convert_scales_test.cc ${_here}/scales_test.cc ${_here}/tile_test.cc)
omni_test(NAME repack_golden_test SOURCES ${_here}/golden_test.cc ${_here}/digest_test.cc LIBRARIES OpenSSL::Crypto)
omni_test(NAME repack_transient_test SOURCES ${_here}/transient_test.cc)
