/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file omni.h  omni-kernels: int4 CPU kernels behind a small C11 interface. The only ABI.
 *
 * Rules that hold everywhere: every struct begins with its own size; handles are opaque; functions return omni_status and put one
 * line in omni_last_error(); on an error nothing is written to any output; the library never prints, aborts, exits, or reads the
 * environment after initialisation; all entries are thread-safe unless they say otherwise.
 */
#ifndef OMNI_OMNI_H
#define OMNI_OMNI_H

#include "omni/activation.h"
#include "omni/attention.h"
#include "omni/conv1d.h"
#include "omni/cpu.h"
#include "omni/dense.h"
#include "omni/dequant.h"
#include "omni/gather.h"
#include "omni/geglu.h"
#include "omni/headgate.h"
#include "omni/headnorm.h"
#include "omni/kernels.h"
#include "omni/layernorm.h"
#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/memory.h"
#include "omni/parallel.h"
#include "omni/quantize.h"
#include "omni/repack.h"
#include "omni/rmsnorm.h"
#include "omni/rope.h"
#include "omni/status.h"
#include "omni/swiglu.h"
#include "omni/version.h"

#endif
