foreach(worker model speech)
  if(TARGET omni-${worker}-worker AND TARGET omni-pack)
    omni_reference_test(omni_${worker}_worker_test reference/worker/${worker}_worker_test.cc)
    target_compile_definitions(omni_${worker}_worker_test PRIVATE OMNI_WORKER="$<TARGET_FILE:omni-${worker}-worker>"
                                                                  OMNI_PACK="$<TARGET_FILE:omni-pack>")
    add_dependencies(omni_${worker}_worker_test omni-${worker}-worker omni-pack)
  endif()
endforeach()
