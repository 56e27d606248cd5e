if(TARGET omni-model-worker AND TARGET omni-pack)
  omni_reference_test(omni_model_worker_test reference/worker/worker_test.cc)
  target_compile_definitions(omni_model_worker_test PRIVATE OMNI_MODEL_WORKER="$<TARGET_FILE:omni-model-worker>"
                                                            OMNI_PACK="$<TARGET_FILE:omni-pack>")
  add_dependencies(omni_model_worker_test omni-model-worker omni-pack)
endif()
