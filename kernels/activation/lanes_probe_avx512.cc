// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/lanes_probe.inl"

namespace okl::test {

const LanesProbe lanes_probe_avx512 = make_lanes_probe();

}  // namespace okl::test
