/* Measures the constants of expected_time() (src/engine/cl/linalg/gemm.c) on the first GPU: device
 * times of products by each kind of tile of matrix instructions, where every unit has the same
 * number r of tiles, and the least squares fit (of relative errors) of
 *
 *   microseconds = launch + k (latency + r work)
 *
 * A program of its own, over the core without R: `make -C bench ../build/bench/gemm_tiles`, then
 * `build/bench/gemm_tiles inst/kernels`. Output: the name of the device, then a line a kind of tile
 * and form, with the largest relative error of the fit. With "all" as a second argument also a line
 * "tile,form,r,k,microseconds" a measurement. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/linalg/linalg.h"

#include "device.h"

enum { REPEATS = 9, TILES_OF_UNIT = 5, DEPTHS = 5, CASES = TILES_OF_UNIT * DEPTHS };

static const size_t tiles_of_unit[TILES_OF_UNIT] = {1, 2, 4, 8, 16};
static const size_t depths[DEPTHS] = {64, 256, 512, 1024, 4096};

static scl_block filled(size_t m, size_t n) {
  scl_block x;
  check(scl_block_create(ctx, m, n, &x));
  check(ctx->engine->fill(ctx, 1.0, x));
  return x;
}

static void multiply(const scl_cl_product *p, scl_cl_tile tile) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, p->a.buffer);
  scl_cl_op_reads(&op, p->b.buffer);
  scl_cl_op_writes(&op, p->c.buffer);
  check(scl_cl_op_order(&op, -1));
  check(scl_cl_op_end(&op, scl_cl_product_tiled_in(&op, p, tile)));
}

/* The median of the microseconds of A B or A B', of the shape m x k times k x n. */
static double measure(scl_cl_tile tile, bool trans_b, size_t m, size_t n, size_t k) {
  double times[REPEATS];
  const scl_cl_product p = {.alpha = 1.0,
                            .trans_b = trans_b ? SCL_TRANS : SCL_NO_TRANS,
                            .view_a = SCL_GENERAL,
                            .view_b = SCL_GENERAL,
                            .region = SCL_ALL,
                            .a = filled(m, k),
                            .b = trans_b ? filled(n, k) : filled(k, n),
                            .c = filled(m, n),
                            .batch = 1};
  check(ctx->engine->finish(ctx));
  for (int run = -1; run < REPEATS; run++) { /* the first compiles */
    check(scl_device_profile_begin(ctx));
    multiply(&p, tile);
    check(ctx->engine->finish(ctx));
    check(scl_device_profile_end(ctx, &times[run < 0 ? 0 : run]));
  }
  scl_buffer_release(p.a.buffer);
  scl_buffer_release(p.b.buffer);
  scl_buffer_release(p.c.buffer);
  qsort(times, REPEATS, sizeof *times, ascending);
  return 1e3 * times[REPEATS / 2];
}

/* Least squares of 1 on the rows x, each with 3 elements, by the normal equations. */
static void fit(double (*x)[3], double *coefficients) {
  double a[3][4] = {{0}};
  for (int at = 0; at < CASES; at++) {
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) a[i][j] += x[at][i] * x[at][j];
      a[i][3] += x[at][i];
    }
  }
  for (int i = 0; i < 3; i++) {
    for (int row = 0; row < 3; row++) {
      const double factor = row == i ? 0.0 : a[row][i] / a[i][i];
      for (int j = 0; j < 4; j++) a[row][j] -= factor * a[i][j];
    }
  }
  for (int i = 0; i < 3; i++) coefficients[i] = a[i][3] / a[i][i];
}

static void study(scl_cl_program program, size_t units, bool print_all) {
  const scl_cl_product_form form = scl_cl_product_form_of(program);
  const bool trans_b = form.trans_b == SCL_TRANS;
  double x[CASES][3], coefficients[3], worst = 0.0;
  size_t down = (size_t)sqrt((double)units); /* rows of tiles */
  while (units % down != 0) down--;
  for (int at = 0; at < CASES; at++) {
    const size_t r = tiles_of_unit[at / DEPTHS], k = depths[at % DEPTHS];
    const double time = measure(form.tile, trans_b, form.m * down, form.n * (units / down) * r, k);
    if (print_all)
      printf("%zu x %zu,%s,%zu,%zu,%.2f\n", form.m, form.n, trans_b ? "A B'" : "A B", r, k, time);
    x[at][0] = 1.0 / time;
    x[at][1] = (double)k / time;
    x[at][2] = (double)(r * k) / time;
  }
  fit(x, coefficients);
  for (int at = 0; at < CASES; at++) {
    double share = 0.0;
    for (int i = 0; i < 3; i++) share += coefficients[i] * x[at][i];
    worst = fmax(worst, fabs(share - 1.0));
  }
  printf("%3zu x %3zu  %-4s  launch %5.1f  latency %.4f  work %.4f  (error at most %.0f%%)\n",
         form.m, form.n, trans_b ? "A B'" : "A B", coefficients[0], coefficients[1],
         coefficients[2], 100.0 * worst);
  fflush(stdout);
}

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "usage: gemm_tiles KERNELS [all]\n");
    return 2;
  }
  const scl_device_info *device = open_device(words[1], SCL_DEVICE_GPU, "no GPU");
  printf("%s, %zu units\n", device->name, (size_t)device->units);
  for (int tile = SCL_CL_TILE_MMA_TINY; tile < SCL_CL_TILES; tile++) {
    for (int trans_b = 0; trans_b < 2; trans_b++) {
      if (tile == SCL_CL_TILE_MMA_HUGE && !trans_b) continue;
      const scl_cl_program program = scl_cl_product_program((scl_cl_tile)tile, SCL_NO_TRANS,
                                                            trans_b ? SCL_TRANS : SCL_NO_TRANS);
      bool usable;
      check(scl_cl_try_program((scl_cl_context *)ctx, program, &usable));
      if (usable) study(program, (size_t)device->units, count > 2);
    }
  }
  scl_context_release(ctx);
  return 0;
}
