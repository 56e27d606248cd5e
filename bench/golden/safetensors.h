// SPDX-License-Identifier: Apache-2.0
// The reader of safetensors under the name that the golden checks use.
#pragma once

#include "tools/common/safetensors.h"

namespace omni_golden {

using omni_files::SafetensorsError;
using omni_files::SafetensorsFile;
using omni_files::Tensor;

}  // namespace omni_golden
