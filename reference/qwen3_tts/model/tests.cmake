omni_reference_test(tts_text_test reference/qwen3_tts/model/text_test.cc)
