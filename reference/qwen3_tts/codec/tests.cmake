omni_reference_test(tts_codec_test reference/qwen3_tts/codec/decoder_test.cc)
target_sources(tts_codec_test PRIVATE ${PROJECT_SOURCE_DIR}/reference/qwen3_tts/codec/golden_test.cc
                                      ${PROJECT_SOURCE_DIR}/reference/qwen3_tts/codec/determinism_test.cc)
# No test: a profile by stage (docs/codec.md).
add_executable(tts_codec_profile ${PROJECT_SOURCE_DIR}/reference/qwen3_tts/codec/profile_main.cc)
target_compile_definitions(tts_codec_profile PRIVATE OMNI_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
target_link_libraries(tts_codec_profile PRIVATE omni_reference GTest::gtest)
