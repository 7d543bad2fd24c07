/* Times products, symmetric products, triangular solves and factors of the device engine next to
 * CLBlast's on the same CPU OpenCL device, queue and buffers, one after the other in the same run.
 * A program of its own, over the core without R: `clblast KERNELS [n ...]`, where KERNELS is the
 * folder inst/kernels. CLBlast's library is opened if it is there (Debian: libclblast1); its times
 * are left empty if not. CLBlast has no Cholesky factor: the host's LAPACK stands in for it.
 *
 * A line "operation,n,device ms,wall ms,peer,peer's wall ms" a measurement, medians. Exits with 1
 * if the two results differ by more than rounding. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/cl/runtime/cl.h"

#include "device.h"

/* CLBlast's C interface, as far as it is called: codes as in BLAS. */
enum { COLUMN_MAJOR = 102, NO = 111, YES = 112, LOWER = 122, NON_UNIT = 131, LEFT = 141 };
typedef int gemm_fn(int, int, int, size_t, size_t, size_t, double, cl_mem, size_t, size_t, cl_mem,
                    size_t, size_t, double, cl_mem, size_t, size_t, cl_command_queue *, cl_event *);
typedef int syrk_fn(int, int, int, size_t, size_t, double, cl_mem, size_t, size_t, double, cl_mem,
                    size_t, size_t, cl_command_queue *, cl_event *);
typedef int trsm_fn(int, int, int, int, int, size_t, size_t, double, cl_mem, size_t, size_t, cl_mem,
                    size_t, size_t, cl_command_queue *, cl_event *);

static struct {
  gemm_fn *gemm;
  syrk_fn *syrk;
  trsm_fn *trsm;
} clblast;

extern void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);

static void check_peer(int code) {
  if (code == 0) return;
  fprintf(stderr, "CLBlast: status %d\n", code);
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void open_clblast(void) {
  void *library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  *(void **)&clblast.gemm = dlsym(library, "CLBlastDgemm");
  *(void **)&clblast.syrk = dlsym(library, "CLBlastDsyrk");
  *(void **)&clblast.trsm = dlsym(library, "CLBlastDtrsm");
}

/* ---- the operations -------------------------------------------------------------------------- */
/* Three n x n matrices on the device, the third one twice, and where the results go. */
typedef struct {
  size_t n;
  scl_block a, b, start, ours, peers, info;
  double *positive, *factor; /* for LAPACK */
} problem;

static cl_mem memory_of(scl_block b) {
  return ((scl_cl_buffer *)b.buffer)->memory;
}

static cl_command_queue *queue_of_peer(void) {
  return &((scl_cl_context *)ctx)->queue[SCL_CL_COMPUTE_0];
}

static void gemm_ours(problem *p) {
  check(ctx->engine->gemm(ctx, 1.0, SCL_NO_TRANS, p->a, SCL_GENERAL, SCL_NO_TRANS, p->b,
                          SCL_GENERAL, 0.0, p->ours, SCL_ALL));
}
static void gemm_peer(problem *p) {
  check_peer(clblast.gemm(COLUMN_MAJOR, NO, NO, p->n, p->n, p->n, 1.0, memory_of(p->a), 0, p->a.ld,
                          memory_of(p->b), 0, p->b.ld, 0.0, memory_of(p->peers), 0, p->peers.ld,
                          queue_of_peer(), NULL));
}

static void gemm_tn_ours(problem *p) {
  check(ctx->engine->gemm(ctx, 1.0, SCL_TRANS, p->a, SCL_GENERAL, SCL_NO_TRANS, p->b, SCL_GENERAL,
                          0.0, p->ours, SCL_ALL));
}
static void gemm_tn_peer(problem *p) {
  check_peer(clblast.gemm(COLUMN_MAJOR, YES, NO, p->n, p->n, p->n, 1.0, memory_of(p->a), 0, p->a.ld,
                          memory_of(p->b), 0, p->b.ld, 0.0, memory_of(p->peers), 0, p->peers.ld,
                          queue_of_peer(), NULL));
}

static void syrk_ours(problem *p) {
  check(ctx->engine->gemm(ctx, 1.0, SCL_NO_TRANS, p->b, SCL_GENERAL, SCL_TRANS, p->b, SCL_GENERAL,
                          0.0, p->ours, SCL_LOWER_HALF));
}
static void syrk_peer(problem *p) {
  check_peer(clblast.syrk(COLUMN_MAJOR, LOWER, NO, p->n, p->n, 1.0, memory_of(p->b), 0, p->b.ld,
                          0.0, memory_of(p->peers), 0, p->peers.ld, queue_of_peer(), NULL));
}

static void trsm_ours(problem *p) {
  check(ctx->engine->trsm(ctx, SCL_LEFT, SCL_LOWER, SCL_NO_TRANS, p->a, p->ours));
}
static void trsm_peer(problem *p) {
  check_peer(clblast.trsm(COLUMN_MAJOR, LEFT, LOWER, NO, NON_UNIT, p->n, p->n, 1.0, memory_of(p->a),
                          0, p->a.ld, memory_of(p->peers), 0, p->peers.ld, queue_of_peer(), NULL));
}

static void potrf_ours(problem *p) {
  check(ctx->engine->potrf(ctx, p->ours, p->info));
}
static void potrf_peer(problem *p) {
  int n = (int)p->n, info = 0;
  dpotrf_("L", &n, p->factor, &n, &info, 1);
  if (info != 0) exit(1);
}

typedef enum { PRODUCT, HALF, SOLVE, FACTOR } kind;
static const struct {
  const char *name, *peer;
  kind kind;
  void (*ours)(problem *), (*theirs)(problem *);
} operations[] = {
    {"gemm", "CLBlast", PRODUCT, gemm_ours, gemm_peer},
    {"gemm tn", "CLBlast", PRODUCT, gemm_tn_ours, gemm_tn_peer},
    {"syrk", "CLBlast", HALF, syrk_ours, syrk_peer},
    {"trsm", "CLBlast", SOLVE, trsm_ours, trsm_peer},
    {"potrf", "LAPACK", FACTOR, potrf_ours, potrf_peer},
};
enum { OPERATIONS = sizeof operations / sizeof *operations, MOST = 15 };

/* ---- timing ---------------------------------------------------------------------------------- */
static double median(double *x, int count) {
  for (int i = 1; i < count; i++) {
    double value = x[i];
    int j = i;
    for (; j > 0 && x[j - 1] > value; j--) x[j] = x[j - 1];
    x[j] = value;
  }
  return x[count / 2];
}

/* Puts the operands in place again: solves and factors work in place. */
static void reset(problem *p, int which) {
  kind kind = operations[which].kind;
  scl_block from = kind == FACTOR ? p->start : p->b;
  if (kind == PRODUCT || kind == HALF) {
    check(ctx->engine->fill(ctx, 0.0, p->ours));
    check(ctx->engine->fill(ctx, 0.0, p->peers));
  } else {
    check(ctx->engine->copy(ctx, SCL_COPY, from, p->ours));
    check(ctx->engine->copy(ctx, SCL_COPY, from, p->peers));
  }
  if (kind == FACTOR) memcpy(p->factor, p->positive, p->n * p->n * sizeof(double));
  check(ctx->engine->finish(ctx));
}

/* Largest difference of the lower triangles, in units of rounding of the largest entry. */
static double difference(problem *p, int which) {
  size_t n = p->n;
  double *x = malloc(2 * n * n * sizeof *x), *y = x + n * n, most = 0, size = 0;
  if (x == NULL) exit(1);
  check(ctx->engine->download(ctx, SCL_GENERAL, p->ours, SCL_WAIT_WRITES, x, n));
  check(ctx->engine->download(ctx, SCL_GENERAL, p->peers, SCL_WAIT_WRITES, y, n));
  if (operations[which].kind == FACTOR) memcpy(y, p->factor, n * n * sizeof *y);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      most = fmax(most, fabs(x[i + j * n] - y[i + j * n]));
      size = fmax(size, fabs(y[i + j * n]));
    }
  }
  free(x);
  return most / (size * (double)n * 2.3e-16);
}

static void compare(problem *p, int which, int times) {
  double device[MOST], wall[MOST], peer[MOST], worst = 0;
  bool with_peer = operations[which].kind == FACTOR || clblast.gemm != NULL;
  for (int run = -1; run < times; run++) { /* the first compiles */
    int at = run < 0 ? 0 : run;
    reset(p, which);
    check(scl_device_profile_begin(ctx));
    double start = now_ms();
    operations[which].ours(p);
    check(ctx->engine->finish(ctx));
    wall[at] = now_ms() - start;
    check(scl_device_profile_end(ctx, &device[at]));
    if (!with_peer) continue;
    start = now_ms();
    operations[which].theirs(p);
    scl_cl.clFinish(*queue_of_peer());
    peer[at] = now_ms() - start;
    if (run < 0) worst = difference(p, which);
  }
  printf("%s,%zu,%.4f,%.4f,%s,", operations[which].name, p->n, median(device, times),
         median(wall, times), with_peer ? operations[which].peer : "");
  if (with_peer) printf("%.4f", median(peer, times));
  printf("\n");
  fflush(stdout);
  if (worst > 10) {
    fprintf(stderr, "%s, n = %zu: results differ by %.1f n eps\n", operations[which].name, p->n,
            worst);
    exit(1);
  }
}

/* ---- data ------------------------------------------------------------------------------------ */
static double random_number(void) {
  static unsigned long long state = 88172645463325252ULL;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 4503599627370496.0 - 1.0;
}

static void put(size_t n, const double *x, scl_block *out) {
  check(scl_block_create(ctx, n, n, out));
  check(ctx->engine->upload(ctx, SCL_GENERAL, x, n, *out));
}

/* A: diagonally dominant, so that its lower triangle is well conditioned. */
static problem make(size_t n) {
  problem p = {.n = n};
  double *x = malloc(n * n * sizeof *x);
  p.positive = malloc(n * n * sizeof *x);
  p.factor = malloc(n * n * sizeof *x);
  if (x == NULL || p.positive == NULL || p.factor == NULL) exit(1);
  for (size_t i = 0; i < n * n; i++) x[i] = random_number();
  put(n, x, &p.b);
  for (size_t i = 0; i < n; i++) x[i * (n + 1)] += (double)n;
  put(n, x, &p.a);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) p.positive[i + j * n] = x[i > j ? i + j * n : j + i * n];
  }
  put(n, p.positive, &p.start);
  check(scl_block_create(ctx, n, n, &p.ours));
  check(scl_block_create(ctx, n, n, &p.peers));
  check(scl_block_create(ctx, 1, 1, &p.info));
  free(x);
  return p;
}

static void drop(problem *p) {
  scl_block blocks[] = {p->a, p->b, p->start, p->ours, p->peers, p->info};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) scl_buffer_release(blocks[i].buffer);
  free(p->positive);
  free(p->factor);
}

int main(int count, char **words) {
  static char *usual[] = {"512", "1000", "2000", "4000"};
  if (count < 2) {
    fprintf(stderr, "usage: clblast KERNELS [n ...]\n");
    return 2;
  }
  open_device(words[1], SCL_DEVICE_CPU, "no CPU OpenCL device");
  open_clblast();
  int sizes = count > 2 ? count - 2 : 4;
  for (int s = 0; s < sizes; s++) {
    size_t n = strtoul(count > 2 ? words[s + 2] : usual[s], NULL, 10);
    if (n == 0) return 2;
    problem p = make(n);
    for (int which = 0; which < OPERATIONS; which++)
      compare(&p, which, n > 2000 ? 1 : n > 1000 ? 3 : 9);
    drop(&p);
  }
  scl_context_release(ctx);
  return 0;
}
