omni_reference_test(tts_codec_test reference/qwen3_tts/codec/decoder_test.cc)
target_sources(tts_codec_test PRIVATE ${PROJECT_SOURCE_DIR}/reference/qwen3_tts/codec/golden_test.cc
                                      ${PROJECT_SOURCE_DIR}/reference/qwen3_tts/codec/determinism_test.cc)
