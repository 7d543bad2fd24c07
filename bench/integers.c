/* Products in double precision by 8-bit integers (src/engine/cl/linalg/integers.c) on the first
 * GPU: the error against that of the native product, the time of each step, the constants of
 * expected_time() that follow from these, and what other cards would take.
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

/* `form`: all but its last step. time: milliseconds up to each step. */
static void print_steps(size_t m, size_t n, size_t k, bool trans_a, bool trans_b, scl_region region,
                        scl_cl_integers_form form, double time[4]) {
  const scl_cl_product p = {.alpha = 1.0,
                            .trans_a = trans_a ? SCL_TRANS : SCL_NO_TRANS,
                            .trans_b = trans_b ? SCL_TRANS : SCL_NO_TRANS,
                            .a = trans_a ? uploaded(k, m, 1) : uploaded(m, k, 1),
                            .b = trans_b ? uploaded(n, k, 2) : uploaded(k, n, 2),
                            .c = uploaded(m, n, 3),
                            .region = region,
                            .batch = 1};
  const double above = region == SCL_ALL ? 0.0 : 0.5 * (double)n * (double)n; /* m >= n */
  const double native = measure(&p, NULL);
  const double flops = 2e-9 * ((double)m * (double)n - above) * (double)k;
  for (int step = 0; step < 4; step++) {
    form.last = (scl_cl_integers_step)step;
    time[step] = measure(&p, &form);
  }
  printf("%6zu %6zu %6zu %s%s%s %2d  %8.3f %6.1f  %8.3f %6.1f  %7.3f %7.3f %8.3f %7.3f  %7.0f\n", m,
         n, k, trans_a ? "T" : "N", trans_b ? "T" : "N", region == SCL_ALL ? " " : "L", form.moduli,
         native, flops / native, time[3], flops / time[3], time[0], time[1] - time[0],
         time[2] - time[1], time[3] - time[2], flops * form.moduli / (time[2] - time[1]));
  fflush(stdout);
  scl_buffer_release(p.a.buffer), scl_buffer_release(p.b.buffer), scl_buffer_release(p.c.buffer);
}

/* ---- other cards ----------------------------------------------------------------------------- */

/* What a card with slow double precision would gain. Measured here: the time of the products of
 * residues, as a share of what the instruction reaches in registers on this device, and of the
 * other steps, taken to move bytes. From data sheets, dense and of the boost clock: the cards'
 * TFLOP/s in single precision, of which double precision has one of STATCL_FP64_RATIO (64), their
 * TOP/s of 8-bit integers and GB/s; for the RTX 5090 906 TOP/s were measured by others. */
static void print_projections(const char *device, size_t n, const double time[4]) {
  static const struct {
    const char *name;
    double single, bytes, memory;
  } cards[] = {{"RTX 4070", 29.1, 233, 504},
               {"RTX 5090", 104.8, 838, 1792},
               {"L40S", 91.6, 733, 864},
               {"B300", 75, 150, 7700}};
  const double here = strstr(device, "H200") != NULL ? 4270 : strstr(device, "H100") ? 3000 : 0;
  const char *set = getenv("STATCL_FP64_RATIO");
  const double ratio = set != NULL ? atof(set) : 64, instruction = 1240; /* TOP/s, in registers */
  const double flops = 2e-9 * (double)n * (double)n * (double)n;
  const double reached = INTEGERS_FEWEST * flops / (time[2] - time[1]) / instruction;
  if (here == 0) return;
  printf("projected, n %zu, double precision 1/%g: measured %.2f of the instruction's rate, %.3f "
         "ms of other steps at %.0f GB/s\n",
         n, ratio, reached, time[3] - time[2] + time[1], here);
  for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
    const double native = flops * ratio / cards[i].single;
    const double products = INTEGERS_FEWEST * flops / (reached * cards[i].bytes);
    const double integers = products + (time[3] - time[2] + time[1]) * here / cards[i].memory;
    printf("  %-8s native %8.1f ms (%.2f TFLOP/s), integers %7.1f ms (%.1f), gain %.1f\n",
           cards[i].name, native, flops / native, integers, flops / integers, native / integers);
  }
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

static void print_errors(scl_cl_integers_kind kind, size_t n, size_t k) {
  double *a = numbers(n * k, 1), *b = numbers(n * k, 2), *c = malloc(n * n * sizeof *c);
  const scl_cl_product p = {.alpha = 1.0,
                            .a = uploaded(n, k, 1),
                            .b = uploaded(k, n, 2),
                            .c = uploaded(n, n, 3),
                            .batch = 1};
  printf("errors, n %zu, k %zu:", n, k);
  for (int moduli = INTEGERS_FEWEST - 1; moduli <= INTEGERS_MOST; moduli++) {
    const scl_cl_integers_form form = {
        .moduli = moduli, .kind = kind, .last = SCL_CL_INTEGERS_JOIN};
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

/* ---- what expected_time() has ---------------------------------------------------------------- */

/* The constants of expected_time() (src/engine/cl/linalg/integers.c), from the milliseconds up to
 * each step at some orders. Of the steps but the product of residues
 *
 *   microseconds = steps + element 3 n^2 / units
 *
 * by least squares of relative errors; of that product the rate at the order of which the
 * projections are made. */
static void print_constants(double units, int count, const size_t *orders, double (*time)[4],
                            int chosen) {
  double a[2][3] = {{0}}, worst = 0.0;
  for (int i = 0; i < count; i++) {
    const double n = (double)orders[i], took = 1e3 * (time[i][3] - time[i][2] + time[i][1]);
    const double x[3] = {1.0 / took, 3.0 * n * n / units / took, 1.0};
    for (int row = 0; row < 2; row++)
      for (int column = 0; column < 3; column++) a[row][column] += x[row] * x[column];
  }
  const double det = a[0][0] * a[1][1] - a[0][1] * a[1][0];
  const double steps = (a[0][2] * a[1][1] - a[1][2] * a[0][1]) / det;
  const double element = (a[1][2] * a[0][0] - a[0][2] * a[1][0]) / det;
  for (int i = 0; i < count; i++) {
    const double n = (double)orders[i], took = 1e3 * (time[i][3] - time[i][2] + time[i][1]);
    worst = fmax(worst, fabs((steps + element * 3.0 * n * n / units) / took - 1.0));
  }
  const double n = (double)orders[chosen], product = 1e3 * (time[chosen][2] - time[chosen][1]);
  printf("expected_time(): steps %.0f, element %.4f (error at most %.0f%%), rate %.2fe6\n", steps,
         element, 100.0 * worst, 2e-6 * INTEGERS_FEWEST * n * n * n / product / units);
}

static void print_kind(scl_cl_integers_kind kind, const scl_device_info *device,
                       double times[5][4]) {
  static const size_t orders[] = {1024, 2048, 4096, 8192, 16384};
  scl_cl_integers_form form = {.moduli = 14, .kind = kind};
  double other[4];
  printf("\n%s\n", scl_cl_program_name(scl_cl_integers_program(kind)));
  print_errors(kind, 1024, 512);
  print_errors(kind, 1024, 4096);
  print_errors(kind, 2048, 8192);
  printf("     m      n      k op   s    native TFLOP  integers TFLOP  measure   split multiply    "
         "join    TOP/s\n");
  for (int i = 0; i < 5; i++)
    print_steps(orders[i], orders[i], orders[i], false, false, SCL_ALL, form, times[i]);
  print_steps(8192, 8192, 8192, false, true, SCL_ALL, form, other);
  print_steps(8192, 8192, 8192, true, false, SCL_ALL, form, other);
  print_steps(8192, 8192, 1024, false, true, SCL_ALL, form, other);
  print_steps(8192, 8192, 2048, false, true, SCL_ALL, form, other);
  /* the first two and the fourth update of a Cholesky factor of order 32000 */
  print_steps(16000, 16000, 16000, false, true, SCL_LOWER_HALF, form, other);
  print_steps(24000, 8000, 8000, false, true, SCL_LOWER_HALF, form, other);
  print_steps(28000, 4000, 4000, false, true, SCL_LOWER_HALF, form, other);
  form.moduli = 15;
  print_steps(8192, 8192, 8192, false, false, SCL_ALL, form, other);
  print_constants((double)device->units, 5, orders, times, 3);
}

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "usage: integers KERNELS\n");
    return 2;
  }
  const scl_device_info *device = open_device(words[1], SCL_DEVICE_GPU, "no GPU");
  printf("%s, %zu units\n", device->name, (size_t)device->units);
  double times[5][4];
  for (int kind = SCL_CL_INTEGERS_MMA; kind < SCL_CL_INTEGERS_KINDS; kind++) {
    scl_cl_context *cl = (scl_cl_context *)ctx;
    const scl_cl_program program = scl_cl_integers_program((scl_cl_integers_kind)kind);
    bool usable;
    check(scl_cl_try_program(cl, program, &usable));
    if (usable)
      print_kind((scl_cl_integers_kind)kind, device, times);
    else
      printf("%s is not usable: %s\n", scl_cl_program_name(program), cl->trial[program].reason);
    if (usable && kind == SCL_CL_INTEGERS_MMA) {
      print_projections(device->name, 4096, times[2]);
      print_projections(device->name, 8192, times[3]);
    }
  }
  scl_context_release(ctx);
  return 0;
}
