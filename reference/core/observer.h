// SPDX-License-Identifier: Apache-2.0
// Sees the tensors of a forward pass as they are made: parity, calibration, tests.
#pragma once

#include <cstdint>
#include <string>

#include "omni/omni.h"

namespace ref {

class Observer {
 public:
  virtual ~Observer() = default;
  // Whether tensor() wants to see rows of that name; it is asked before each.
  virtual bool wants(const std::string& /*name*/) const { return true; }
  // Rows of a named tensor at positions position, position + 1, ...; `type` is OMNI_DTYPE_F32 or OMNI_DTYPE_BF16, `data` is
  // [rows][columns] with rows `ld` elements apart and lives for the call.
  virtual void tensor(const std::string& name, int64_t position, int64_t rows, int64_t columns, omni_dtype type, const void* data,
                      int64_t ld) = 0;
};

// Tells the observer unless there is none, or it does not want to know.
inline void observe(Observer* observer, const std::string& name, int64_t position, int64_t rows, int64_t columns, omni_dtype type,
                    const void* data, int64_t ld) {
  if (observer != nullptr && rows > 0 && observer->wants(name)) observer->tensor(name, position, rows, columns, type, data, ld);
}

}  // namespace ref
