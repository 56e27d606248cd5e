# What needs no program: the pipeline and what is around it, with test doubles and a golden checkpoint.
foreach(part model_source options pipeline statistics text_split)
  omni_reference_test(speak_${part}_test reference/speak/${part}_test.cc)
  target_link_libraries(speak_${part}_test PRIVATE omni_speak_core)
endforeach()
