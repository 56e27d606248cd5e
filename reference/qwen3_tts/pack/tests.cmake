omni_reference_test(tts_pack_test reference/qwen3_tts/pack/pack_test.cc)
omni_reference_test(tts_synthetic_test reference/qwen3_tts/pack/synthetic_test.cc)
omni_reference_test(tts_packed_test reference/qwen3_tts/pack/packed_test.cc)
