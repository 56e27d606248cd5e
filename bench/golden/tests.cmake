omni_test(NAME safetensors_test SOURCES ${PROJECT_SOURCE_DIR}/bench/golden/safetensors_test.cc)
omni_test(NAME sha256_test SOURCES ${PROJECT_SOURCE_DIR}/bench/golden/sha256_test.cc LIBRARIES OpenSSL::Crypto)
