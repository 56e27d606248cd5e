# The software model of AMX and AVX-VNNI: linked by tests only.
set(_model ${PROJECT_SOURCE_DIR}/jit/amx_model)
add_library(omni_amx_model STATIC ${_model}/emulator.cc ${_model}/instruction.cc ${_model}/tiles.cc ${_model}/vector_dot.cc
                                  ${_model}/vector_frame.cc)
target_link_libraries(omni_amx_model PUBLIC omni_compile_flags)
omni_test(NAME amx_model_test SOURCES ${_model}/instruction_test.cc ${_model}/tiles_test.cc ${_model}/emulator_test.cc
          ${_model}/vector_test.cc
          LIBRARIES omni_amx_model)
