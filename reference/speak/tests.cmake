# What needs no program: the pipeline and what is around it, with test doubles and a golden checkpoint.
foreach(part model_source options pipeline statistics text_split)
  omni_reference_test(speak_${part}_test reference/speak/${part}_test.cc)
  target_link_libraries(speak_${part}_test PRIVATE omni_speak_core)
endforeach()
# omni-speak from outside.
foreach(part clone_program commands_program docs program)
  omni_reference_test(speak_${part}_test reference/speak/${part}_test.cc)
  target_sources(speak_${part}_test PRIVATE ${PROJECT_SOURCE_DIR}/tools/probe/child.cc)
  target_compile_definitions(speak_${part}_test PRIVATE OMNI_SPEAK="$<TARGET_FILE:omni-speak>"
                                                              OMNI_PACK="$<TARGET_FILE:omni-pack>" OMNI_SOURCE="${PROJECT_SOURCE_DIR}")
  target_link_libraries(speak_${part}_test PRIVATE omni_speak_core)
  add_dependencies(speak_${part}_test omni-speak omni-pack)
endforeach()
