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

static const char *const layouts[] = {"apart", "staggered", "together"};

/* `form`: all but its last step. time: milliseconds up to each step. */
static void print_steps(size_t m, size_t n, size_t k, bool trans_a, bool trans_b,
                        scl_cl_integers_form form, double time[4]) {
  const scl_cl_product p = {.alpha = 1.0,
                            .trans_a = trans_a ? SCL_TRANS : SCL_NO_TRANS,
                            .trans_b = trans_b ? SCL_TRANS : SCL_NO_TRANS,
                            .a = trans_a ? uploaded(k, m, 1) : uploaded(m, k, 1),
                            .b = trans_b ? uploaded(n, k, 2) : uploaded(k, n, 2),
                            .c = uploaded(m, n, 3),
                            .batch = 1};
  const double native = measure(&p, NULL), flops = 2e-9 * (double)m * (double)n * (double)k;
  for (int step = 0; step < 4; step++) {
    form.last = (scl_cl_integers_step)step;
    time[step] = measure(&p, &form);
  }
  printf("%6zu %6zu %6zu %s%s %2d  %8.3f %6.1f  %8.3f %6.1f  %7.3f %7.3f %8.3f %7.3f  %7.0f %s%s\n",
         m, n, k, trans_a ? "T" : "N", trans_b ? "T" : "N", form.moduli, native, flops / native,
         time[3], flops / time[3], time[0], time[1] - time[0], time[2] - time[1], time[3] - time[2],
         flops * form.moduli / (time[2] - time[1]), layouts[form.layout],
         form.along ? ", along" : "");
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

static void print_errors(size_t n, size_t k) {
  double *a = numbers(n * k, 1), *b = numbers(n * k, 2), *c = malloc(n * n * sizeof *c);
  const scl_cl_product p = {.alpha = 1.0,
                            .a = uploaded(n, k, 1),
                            .b = uploaded(k, n, 2),
                            .c = uploaded(n, n, 3),
                            .batch = 1};
  printf("errors, n %zu, k %zu:", n, k);
  for (int moduli = INTEGERS_FEWEST - 1; moduli <= INTEGERS_MOST; moduli++) {
    const scl_cl_integers_form form = {
        .moduli = moduli, .kind = SCL_CL_INTEGERS_MMA, .last = SCL_CL_INTEGERS_JOIN};
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

typedef struct {
  int m, n, warp_n;         /* tile; columns of a warp */
  int depth, stages, order; /* terms of a stage; in the ring; tile rows taken together */
} variant;

enum { FILES = 8 }; /* the definitions and seven files */

static void read_sources(const variant *v, char head[500], const char *text[FILES]) {
  static const char *const files[FILES - 1] = {
      "include/port.h", "include/gemm.h",       "include/integers.h",    "nvidia/mma_ptx.h",
      "nvidia/mma.h",   "portable/integers.cl", "nvidia/integers_mma.cl"};
  snprintf(head, 500,
           "#define INTEGERS_TILE_M %d\n#define INTEGERS_TILE_N %d\n#define INTEGERS_WARP_N %d\n"
           "#define INTEGERS_DEPTH %d\n#define INTEGERS_STAGES %d\n#define INTEGERS_ORDER %d\n"
           "#define INTEGERS_MMA 1\n#define INTEGERS_SPLIT integers_split\n"
           "#define INTEGERS_MULTIPLY integers_multiply\n#define INTEGERS_JOIN integers_join\n",
           v->m, v->n, v->warp_n, v->depth, v->stages, v->order);
  text[0] = head;
  for (int f = 0; f < FILES - 1; f++) {
    char *read;
    check(scl_cl_source_read(files[f], &read));
    text[f + 1] = read;
  }
}

/* What NVIDIA's compiler says of registers and what it spills. */
static void print_resources(const variant *v) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  char head[500], log[20000] = "";
  const char *text[FILES];
  read_sources(v, head, text);
  cl_program program = scl_cl.clCreateProgramWithSource(cl->context, FILES, text, NULL, NULL);
  scl_cl.clBuildProgram(program, 1, &cl->device, "-cl-std=CL1.2 -cl-nv-verbose", NULL, NULL);
  scl_cl.clGetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
  printf("tile %d x %d, warp 64 x %d:\n%s\n", v->m, v->n, v->warp_n, log);
  scl_cl.clReleaseProgram(program);
  for (int f = 1; f < FILES; f++) free((char *)text[f]);
}

static void print_variant(const variant *v, scl_cl_integers_layout layout, size_t size) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  char head[500];
  const char *text[FILES];
  const size_t items = (size_t)(v->m / 64 * (v->n / v->warp_n)) * 32;
  cl_program program;
  scl_cl_launchable kernel;
  double times[REPEATS];
  read_sources(v, head, text);
  printf("tile %3d x %3d, warp 64 x %2d, depth %2d, %d stages, order %2d, size %5zu, %9s:", v->m,
         v->n, v->warp_n, v->depth, v->stages, v->order, size, layouts[layout]);
  if (scl_cl_program_build(cl, FILES, text, "a variant", &program) != SCL_OK) {
    printf(" not built: %s\n", scl_fault_last()->message);
    return;
  }
  check(scl_cl_kernel_make(cl, program, "integers_multiply", &kernel));
  const size_t gap = layout == SCL_CL_INTEGERS_STAGGERED ? INTEGERS_PANEL * (size_t)v->depth : 0;
  const size_t words = (size * size + gap) / 8 * INTEGERS_FEWEST;
  scl_block a = uploaded(words, 1, 1), b = uploaded(words, 1, 2), c = uploaded(words, 1, 3);
  const scl_long stage = INTEGERS_PANEL * v->depth, all = (scl_long)(size * size);
  const scl_long panel = (scl_long)size / v->depth * stage;
  const bool together = layout == SCL_CL_INTEGERS_TOGETHER;
  const scl_long step = together ? stage : all + (scl_long)gap;
  const integers_product product = {.a_step = step,
                                    .b_step = step,
                                    .c_step = all,
                                    .panel_step = together ? INTEGERS_FEWEST * panel : panel,
                                    .stage_step = together ? INTEGERS_FEWEST * stage : stage,
                                    .m = (int)size,
                                    .n = (int)size,
                                    .stages = (int)size / v->depth,
                                    .moduli = INTEGERS_FEWEST,
                                    .rows = (int)size};
  const cl_mem memory[3] = {((scl_cl_buffer *)a.buffer)->memory,
                            ((scl_cl_buffer *)b.buffer)->memory,
                            ((scl_cl_buffer *)c.buffer)->memory};
  for (cl_uint i = 0; i < 3; i++)
    scl_cl.clSetKernelArg(kernel.kernel, i, sizeof(cl_mem), &memory[i]);
  scl_cl.clSetKernelArg(kernel.kernel, 3, sizeof product, &product);
  const size_t across = (size + (size_t)v->m - 1) / (size_t)v->m;
  const size_t groups = across * ((size + (size_t)v->n - 1) / (size_t)v->n) * INTEGERS_FEWEST;
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
  for (int f = 1; f < FILES; f++) free((char *)text[f]);
}

/* Local memory is 48 KB: the stages of a ring. */
static void print_variants(void) {
  static const variant list[] = {
      {256, 128, 64, 32, 4, 8},  {256, 128, 64, 32, 4, 4}, {256, 128, 64, 32, 4, 16},
      {256, 128, 64, 32, 3, 8},  {256, 160, 80, 32, 3, 8}, {256, 160, 80, 32, 3, 4},
      {256, 160, 80, 32, 3, 16}, {256, 192, 96, 32, 3, 8}, {128, 320, 80, 32, 3, 16},
      {256, 128, 64, 64, 2, 8},  {128, 256, 64, 32, 4, 8}, {128, 128, 64, 32, 4, 16}};
  print_resources(&list[0]);
  print_resources(&list[4]);
  print_resources(&list[7]);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    print_variant(&list[i], SCL_CL_INTEGERS_APART, 8192);
    if (i == 0 || i == 4) {
      print_variant(&list[i], SCL_CL_INTEGERS_STAGGERED, 8192);
      print_variant(&list[i], SCL_CL_INTEGERS_TOGETHER, 8192);
      print_variant(&list[i], SCL_CL_INTEGERS_APART, 4096);
    }
  }
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
  scl_cl_integers_form form = {.moduli = 14, .kind = SCL_CL_INTEGERS_MMA};
  double times[5][4], other[4];
  for (int i = 0; i < 5; i++)
    print_steps(orders[i], orders[i], orders[i], false, false, form, times[i]);
  print_steps(8192, 8192, 8192, false, true, form, other);
  print_steps(8192, 8192, 8192, true, false, form, other);
  print_steps(8192, 8192, 1024, false, true, form, other);
  print_steps(8192, 8192, 2048, false, true, form, other);
  form.moduli = 15;
  print_steps(8192, 8192, 8192, false, false, form, other);
  form.moduli = 14;
  for (int v = 1; v < 6 && count > 2; v++) {
    form.layout = (scl_cl_integers_layout)(v / 2);
    form.along = v % 2;
    print_steps(8192, 8192, 8192, false, true, form, other);
    print_steps(8192, 8192, 8192, true, false, form, other);
  }
  print_projections(device->name, 4096, times[2]);
  print_projections(device->name, 8192, times[3]);
  if (count > 2) print_variants();
  scl_context_release(ctx);
  return 0;
}
