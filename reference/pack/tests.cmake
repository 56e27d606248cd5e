omni_reference_test(quantiser_test reference/pack/quantiser_test.cc)
omni_reference_test(gptq_test reference/pack/gptq_test.cc)
omni_reference_test(packer_test reference/pack/packer_test.cc)
omni_reference_test(packed_directory_test reference/pack/packed_directory_test.cc)
