/* SPDX-License-Identifier: Apache-2.0
 * Packs a 4-bit matrix and multiplies a vector by it, on a parallel_for of the program's own:
 *     cc -std=c11 gemv.c $(pkg-config --cflags --libs omni-kernels) && ./a.out */
#include <omni/omni.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 96, K = 256, GROUP = 64 };
static uint8_t codes[N][K];              /* a code q stands for the weight (q - 8) * scale + zero */
static uint16_t scales[K / GROUP][N][2]; /* bf16 scale and zero of every group and channel */
static uint16_t x[K];                    /* bf16 */
static _Alignas(64) uint8_t packed[N * K / 2];
static float y[N];

/* Any scheduler will do that calls every index exactly once and returns afterwards: here a loop from the back. */
static void from_the_back(void* context, int64_t count, omni_task task, void* task_context) {
  for (int64_t i = count; i-- > 0; ++*(int*)context) task(task_context, i);
}

static void must(omni_status status) {
  if (status == OMNI_OK) return;
  fprintf(stderr, "%s: %s\n", omni_status_name(status), omni_last_error());
  exit(1);
}

int main(void) {
  for (int k = 0; k < K; ++k) x[k] = k % 16 == 5 ? 0x3F80 : 0; /* 1.0 in every sixteenth place */
  for (int n = 0; n < N; ++n) {
    for (int k = 0; k < K; ++k) codes[n][k] = (uint8_t)((n + k) % 16);
    for (int g = 0; g < K / GROUP; ++g) scales[g][n][0] = 0x3F00; /* 0.5; the zeros stay 0 */
  }
  int tasks = 0;
  const omni_parallel loop = {sizeof loop, 2, &tasks, from_the_back};

  omni_repack_args pack = {.size = sizeof pack, .n = N, .k = K, .parallel = &loop};
  pack.source_format = OMNI_FORMAT_CODES_U8, pack.source = codes, pack.source_bytes = sizeof codes;
  pack.destination_format = OMNI_FORMAT_TG4, pack.destination = packed, pack.destination_bytes = sizeof packed;
  must(omni_repack(&pack));

  omni_plan* plan = NULL;
  omni_linear_query query = {.size = sizeof query, .numerics = OMNI_NUMERICS_GROUP, .max_m = 1};
  query.x_type = OMNI_DTYPE_BF16, query.y_type = OMNI_DTYPE_F32, query.weights.size = sizeof query.weights;
  must(omni_layout_init(&query.weights, OMNI_FORMAT_TG4, N, K, GROUP, OMNI_DTYPE_BF16));
  must(omni_select(&query, &plan));

  omni_linear_args args = {.size = sizeof args, .m = 1, .x = x, .ldx = K, .y = y, .ldy = N, .parallel = &loop};
  args.codes = packed, args.codes_bytes = sizeof packed, args.scales = scales, args.scales_bytes = sizeof scales;
  must(omni_workspace_size(plan, 1, &args.workspace_bytes));
  args.workspace = aligned_alloc(64, (args.workspace_bytes + 63) / 64 * 64);
  must(omni_run(plan, &args));
  free(args.workspace);
  omni_plan_destroy(plan);

  for (int n = 0; n < N; ++n) { /* sixteen ones meet the code (n + 5) % 16; every sum is exact */
    const float expected = 0.5F * (float)(K / 16) * (float)((n + 5) % 16 - 8);
    if (y[n] != expected) return printf("y[%d] is %g, not %g\n", n, (double)y[n], (double)expected), 1;
  }
  printf("omni-kernels %s: %d channels are right, in %d tasks\n", omni_version(), N, tasks);
  return 0;
}
