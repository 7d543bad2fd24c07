/* Products in double precision by 8-bit integers (src/engine/cl/linalg/integers.c) on the first
 * GPU: the error against that of the native product, the time of each step, and with "variants" as
 * a second argument the time of the products of residues with other sizes of stages and tiles.
 *
 * A program of its own, over the core without R: `make -C bench ../build/bench/integers`, then
 * `build/bench/integers inst/kernels`. Output: the name of the device, then tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/linalg/linalg.h"

#include "device.h"

#include "kernels/include/integers.h"

enum { REPEATS = 5 };

/* Numbers between -1 and 1. */
static double *numbers(size_t count, uint64_t seed) {
  double *x = malloc(count * sizeof *x);
  for (size_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x[i] = (double)(int64_t)seed * 0x1p-63;
  }
  return x;
}

static scl_block uploaded(size_t m, size_t n, uint64_t seed) {
  scl_block x;
  double *host = numbers(m * n, seed);
  check(scl_block_create(ctx, m, n, &x));
  check(ctx->engine->upload(ctx, SCL_GENERAL, host, m, x));
  check(ctx->engine->finish(ctx));
  free(host);
  return x;
}

/* ---- whole products -------------------------------------------------------------------------- */

static void multiply(const scl_cl_product *p, const scl_cl_integers_form *form) {
  scl_cl_op op;
  bool done = true;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, p->a.buffer);
  scl_cl_op_reads(&op, p->b.buffer);
  scl_cl_op_writes(&op, p->c.buffer);
  check(scl_cl_op_order(&op, -1));
  check(scl_cl_op_end(&op, form == NULL ? scl_cl_product_in(&op, p)
                                        : scl_cl_integers_steps_in(&op, p, *form, &done)));
}

/* The median of the milliseconds of a product, up to the last step of `form`; NULL: native. */
static double measure(const scl_cl_product *p, const scl_cl_integers_form *form) {
  double times[REPEATS];
  check(ctx->engine->finish(ctx));
  for (int run = -1; run < REPEATS; run++) { /* the first compiles */
    check(scl_device_profile_begin(ctx));
    multiply(p, form);
    check(ctx->engine->finish(ctx));
    check(scl_device_profile_end(ctx, &times[run < 0 ? 0 : run]));
  }
  qsort(times, REPEATS, sizeof *times, ascending);
  return times[REPEATS / 2];
}

static void print_steps(size_t m, size_t n, size_t k, bool trans_a, bool trans_b, int moduli) {
  const scl_cl_product p = {.alpha = 1.0,
                            .trans_a = trans_a ? SCL_TRANS : SCL_NO_TRANS,
                            .trans_b = trans_b ? SCL_TRANS : SCL_NO_TRANS,
                            .a = trans_a ? uploaded(k, m, 1) : uploaded(m, k, 1),
                            .b = trans_b ? uploaded(n, k, 2) : uploaded(k, n, 2),
                            .c = uploaded(m, n, 3),
                            .batch = 1};
  const double native = measure(&p, NULL), flops = 2e-9 * (double)m * (double)n * (double)k;
  double time[4];
  for (int step = 0; step < 4; step++) {
    const scl_cl_integers_form form = {moduli, false, (scl_cl_integers_step)step};
    time[step] = measure(&p, &form);
  }
  printf("%6zu %6zu %6zu %s%s %2d  %8.3f %6.1f  %8.3f %6.1f  %7.3f %7.3f %8.3f %7.3f  %7.0f\n", m,
         n, k, trans_a ? "T" : "N", trans_b ? "T" : "N", moduli, native, flops / native, time[3],
         flops / time[3], time[0], time[1] - time[0], time[2] - time[1], time[3] - time[2],
         flops * moduli / (time[2] - time[1]));
  fflush(stdout);
  scl_buffer_release(p.a.buffer), scl_buffer_release(p.b.buffer), scl_buffer_release(p.c.buffer);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* The largest error of some elements, in units of 2^-53 times the norms of row and column. */
static double error_of(const double *a, const double *b, const double *c, size_t n, size_t k) {
  double worst = 0.0;
  for (size_t at = 0; at < 4000; at++) {
    const size_t i = at * 7919 % n, j = at * 104729 % n;
    long double sum = 0, x = 0, y = 0;
    for (size_t l = 0; l < k; l++) {
      const long double p = a[i + l * n], q = b[l + j * k];
      sum += p * q;
      x += p * p;
      y += q * q;
    }
    worst = fmax(worst, (double)(fabsl(c[i + j * n] - sum) / (sqrtl(x * y) * 0x1p-53L)));
  }
  return worst;
}

static void print_errors(size_t n, size_t k) {
  double *a = numbers(n * k, 1), *b = numbers(n * k, 2), *c = malloc(n * n * sizeof *c);
  const scl_cl_product p = {.alpha = 1.0,
                            .a = uploaded(n, k, 1),
                            .b = uploaded(k, n, 2),
                            .c = uploaded(n, n, 3),
                            .batch = 1};
  printf("errors, n %zu, k %zu:", n, k);
  for (int moduli = INTEGERS_FEWEST - 1; moduli <= INTEGERS_MOST; moduli++) {
    const scl_cl_integers_form form = {moduli, false, SCL_CL_INTEGERS_JOIN};
    multiply(&p, moduli < INTEGERS_FEWEST ? NULL : &form);
    check(ctx->engine->download(ctx, SCL_GENERAL, p.c, SCL_WAIT_WRITES, c, n));
    if (moduli < INTEGERS_FEWEST)
      printf(" native %.3f", error_of(a, b, c, n, k));
    else
      printf(", %d moduli %.3f", moduli, error_of(a, b, c, n, k));
  }
  printf("\n");
  fflush(stdout);
  scl_buffer_release(p.a.buffer), scl_buffer_release(p.b.buffer), scl_buffer_release(p.c.buffer);
  free(a), free(b), free(c);
}

/* ---- other sizes of stages and tiles --------------------------------------------------------- */

/* Tiles of m x n, stages of `depth` terms. */
static void print_variant(int m, int n, int depth, int stages, int order, size_t size) {
  static const char *const files[] = {
      "include/port.h",        "include/gemm.h", "include/integers.h",    "nvidia/mma_ptx.h",
      "nvidia/mma_emulated.h", "nvidia/mma.h",   "nvidia/integers_mma.cl"};
  enum { FILES = sizeof files / sizeof *files };
  scl_cl_context *cl = (scl_cl_context *)ctx;
  char head[400], *read[FILES];
  const char *text[FILES + 1] = {head};
  const size_t items = (size_t)(m / 64 * (n / 64)) * 32;
  cl_program program;
  scl_cl_launchable kernel;
  double times[REPEATS];
  snprintf(head, sizeof head,
           "#define INTEGERS_TILE_M %d\n#define INTEGERS_TILE_N %d\n#define INTEGERS_DEPTH %d\n"
           "#define INTEGERS_STAGES %d\n#define INTEGERS_ORDER %d\n",
           m, n, depth, stages, order);
  for (int f = 0; f < FILES; f++) {
    check(scl_cl_source_read(files[f], &read[f]));
    text[f + 1] = read[f];
  }
  printf("tile %3d x %3d, depth %2d, %d stages, order %2d, size %5zu:", m, n, depth, stages, order,
         size);
  if (scl_cl_program_build(cl, FILES + 1, text, "a variant", &program) != SCL_OK) {
    printf(" not built: %s\n", scl_fault_last()->message);
    return;
  }
  check(scl_cl_kernel_make(cl, program, "integers_mma_multiply", &kernel));
  const size_t words = size * size / 8 * INTEGERS_FEWEST;
  scl_block a = uploaded(words, 1, 1), b = uploaded(words, 1, 2), c = uploaded(words, 1, 3);
  const integers_product product = {.a_step = (scl_long)(size * size),
                                    .b_step = (scl_long)(size * size),
                                    .c_step = (scl_long)(size * size),
                                    .m = (int)size,
                                    .n = (int)size,
                                    .chunks = (int)(size / INTEGERS_CHUNK),
                                    .moduli = INTEGERS_FEWEST,
                                    .rows = (int)size};
  const cl_mem memory[3] = {((scl_cl_buffer *)a.buffer)->memory,
                            ((scl_cl_buffer *)b.buffer)->memory,
                            ((scl_cl_buffer *)c.buffer)->memory};
  for (cl_uint i = 0; i < 3; i++)
    scl_cl.clSetKernelArg(kernel.kernel, i, sizeof(cl_mem), &memory[i]);
  scl_cl.clSetKernelArg(kernel.kernel, 3, sizeof product, &product);
  const size_t groups = size / (size_t)m * (size / (size_t)n) * INTEGERS_FEWEST;
  const scl_cl_range range = scl_cl_range_1(groups * items, items);
  for (int run = -1; run < REPEATS; run++) {
    scl_cl_op op;
    check(scl_device_profile_begin(ctx));
    scl_cl_op_begin(&op, ctx);
    scl_cl_op_reads(&op, a.buffer), scl_cl_op_reads(&op, b.buffer);
    scl_cl_op_writes(&op, c.buffer);
    check(scl_cl_op_order(&op, -1));
    check(scl_cl_op_end(&op, scl_cl_enqueue(&op, &kernel, &range, 0)));
    check(ctx->engine->finish(ctx));
    check(scl_device_profile_end(ctx, &times[run < 0 ? 0 : run]));
  }
  qsort(times, REPEATS, sizeof *times, ascending);
  printf(" %8.3f ms, %6.0f TOP/s\n", times[REPEATS / 2],
         2e-9 * INTEGERS_FEWEST * (double)size * (double)size * (double)size / times[REPEATS / 2]);
  fflush(stdout);
  scl_cl.clReleaseKernel(kernel.kernel);
  scl_buffer_release(a.buffer), scl_buffer_release(b.buffer), scl_buffer_release(c.buffer);
  for (int f = 0; f < FILES; f++) free(read[f]);
}

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "usage: integers KERNELS [variants]\n");
    return 2;
  }
  const scl_device_info *device = open_device(words[1], SCL_DEVICE_GPU, "no GPU");
  printf("%s, %zu units\n", device->name, (size_t)device->units);
  bool usable;
  check(scl_cl_try_program((scl_cl_context *)ctx, SCL_CL_PROGRAM_integers_mma, &usable));
  if (!usable) {
    printf("not usable: %s\n", ((scl_cl_context *)ctx)->trial[SCL_CL_PROGRAM_integers_mma].reason);
    return 1;
  }
  print_errors(1024, 512);
  print_errors(1024, 4096);
  print_errors(2048, 8192);
  printf("     m      n      k op  s    native TFLOP  integers TFLOP  measure   split multiply    "
         "join    TOP/s\n");
  static const size_t orders[] = {1024, 2048, 4096, 8192, 16384};
  for (int i = 0; i < 5; i++) print_steps(orders[i], orders[i], orders[i], false, false, 14);
  print_steps(8192, 8192, 8192, false, true, 14);
  print_steps(8192, 8192, 8192, true, false, 14);
  print_steps(8192, 8192, 8192, false, false, 15);
  print_steps(8192, 8192, 1024, false, true, 14);
  print_steps(8192, 8192, 2048, false, true, 14);
  if (count > 2) {
    for (size_t size = 4096; size <= 8192; size *= 2) {
      print_variant(256, 128, 32, 4, 8, size);
      print_variant(256, 128, 32, 4, 4, size);
      print_variant(256, 128, 32, 4, 16, size);
      print_variant(256, 128, 32, 3, 8, size);
      print_variant(256, 128, 64, 2, 8, size);
      print_variant(128, 256, 32, 4, 8, size);
      print_variant(128, 256, 64, 2, 8, size);
      print_variant(128, 128, 64, 3, 8, size);
      print_variant(128, 128, 64, 2, 16, size);
      print_variant(128, 128, 32, 4, 16, size);
    }
  }
  scl_context_release(ctx);
  return 0;
}
