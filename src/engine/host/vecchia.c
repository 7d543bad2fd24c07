/* Vecchia's approximation on the host (engine/pass/vecchia.h): LANES points side by side. */
#include "engine/host/vecchia.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"

enum {
  CHUNK = 512,        /* points whose results are summed together, a multiple of SCL_LANES */
  CHUNKS = 256,       /* of a round, between two polls */
  THREADS_FROM = 1024 /* points */
};

static const lanes zero = {0};

/* The noise of quiet neighbours, by their variance: with smooth covariances, draws from draws would
 * grow without it. */
static const double quiet_noise = 1e-10;

typedef struct {
  const struct scl_vecchia_pass *pass;
  size_t results, total; /* of a chunk: all; those that the threads add up */
  size_t from, to;       /* chunks of this round */
  double *out;           /* of each chunk of the round */
  char *memory;
  size_t bytes; /* for each thread */
} job;

/* ---- a block's points ----------------------------------------------------------------------- */

static void read_record(block *v, const double *record, size_t row, int w, bool real, bool quiet) {
  const struct scl_vecchia_pass *pass = v->pass;
  size_t rows = v->rows;
  double noise2 = quiet ? 0.0 : pass->kernel->noise * pass->kernel->noise, known = 0;
  for (size_t c = 0; c < pass->p; c++) *scl_lane(v->x, c * rows + row, w) = record[c];
  record += pass->p;
  for (size_t c = 0; c < pass->columns; c++) {
    *scl_lane(v->z, c * rows + row, w) = real ? record[c] : 0.0;
  }
  if (pass->spread && !quiet) {
    noise2 *= record[pass->columns];
    known = record[pass->columns + 1];
  }
  *scl_lane(v->noise, row, w) = noise2 + known;
  *scl_lane(v->by_noise, row, w) = 2.0 * noise2;
  *scl_lane(v->quiet, row, w) = quiet ? 1.0 : 0.0;
  *scl_lane(v->real, row, w) = real ? 1.0 : 0.0;
}

/* Rows of missing neighbours hold the point itself, and count as unrelated to everything. */
static void read_points(block *v, size_t i) {
  const struct scl_vecchia_pass *pass = v->pass;
  const double *from = scl_host_at(pass->records);
  const double *at = pass->at.buffer == NULL ? from : scl_host_at(pass->at);
  size_t step = pass->at.buffer == NULL ? pass->records.ld : pass->at.ld;
  for (int w = 0; w < SCL_LANES; w++) {
    size_t point = scl_min(i + (size_t)w, pass->n - 1), own = pass->first + point;
    const double *itself = at + own * step;
    const int32_t *next =
        (const int32_t *)(scl_host_at(pass->neighbours) + own * pass->neighbours.ld);
    *scl_lane(&v->present, 0, w) = i + (size_t)w < pass->n ? 1.0 : 0.0;
    for (size_t r = 0; r < pass->m; r++) {
      bool real = next[r] >= 0;
      const double *record = real ? from + (size_t)next[r] * pass->records.ld : itself;
      bool quiet = pass->quiet && real && (size_t)next[r] >= pass->noisy;
      read_record(v, record, r, w, real, quiet);
    }
    read_record(v, itself, pass->m, w, true, pass->quiet);
  }
}

/* ---- factor and solves ---------------------------------------------------------------------- */

/* Divides column j of the factor by the root of its pivot. A pivot that is nothing but rounding
 * errors of the diagonal counts as zero. */
INLINED void scale_column(block *v, size_t j, lanes *diagonal) {
  size_t rows = v->rows;
  lanes *column = v->k + j * rows, pivot = column[j];
  for (int w = 0; w < SCL_LANES; w++) {
    double least = *scl_lane(diagonal, j, w) * (double)rows * 0x1p-52;
    if (*scl_lane(&pivot, 0, w) > least) continue;
    if (*scl_lane(v->quiet, j, w) != 0) {
      *scl_lane(&pivot, 0, w) = least; /* a point that is also an observation, or another point */
    } else if (v->order == 0) {
      v->order = w + 1;
    }
  }
  lanes d, inverse;
  for (int w = 0; w < SCL_LANES; w++) *scl_lane(&d, 0, w) = sqrt(*scl_lane(&pivot, 0, w));
  inverse = 1.0 / d;
  column[j] = d;
  for (size_t i = j + 1; i < rows; i++) column[i] *= inverse;
}

/* The lower factor, two columns at a time. */
INLINED void factor(block *v) {
  size_t n = v->rows;
  lanes *diagonal = v->c;
  for (size_t j = 0; j < n; j++) {
    diagonal[j] = v->k[j + j * n];
    if (j + 1 < n) v->k[j + j * n] += v->quiet[j] * diagonal[j] * quiet_noise;
  }
  for (size_t k = 0; k < n; k += 2) {
    lanes *left = v->k + k * n, *next = left + n;
    scale_column(v, k, diagonal);
    if (k + 1 == n) break;
    for (size_t i = k + 1; i < n; i++) next[i] -= left[i] * left[k + 1];
    scale_column(v, k + 1, diagonal);
    for (size_t j = k + 2; j < n; j++) {
      lanes *column = v->k + j * n, r = left[j], s = next[j];
      for (size_t i = j; i < n; i++) column[i] -= left[i] * r + next[i] * s;
    }
  }
}

/* x := L^-T x */
INLINED void solve_back(const block *v, lanes *x) {
  size_t n = v->rows;
  for (size_t j = n; j-- > 0;) {
    const lanes *column = v->k + j * n;
    lanes even = zero, odd = zero;
    size_t i = j + 1;
    for (; i + 1 < n; i += 2) {
      even += column[i] * x[i];
      odd += column[i + 1] * x[i + 1];
    }
    if (i < n) even += column[i] * x[i];
    x[j] = (x[j] - (even + odd)) / column[j];
  }
}

/* x := L^-1 x */
INLINED void solve_forward(const block *v, lanes *x) {
  size_t n = v->rows;
  for (size_t j = 0; j < n; j++) {
    const lanes *column = v->k + j * n;
    lanes r = x[j] / column[j];
    x[j] = r;
    for (size_t i = j + 1; i < n; i++) x[i] -= column[i] * r;
  }
}

/* out = a' b */
INLINED void dot(const lanes *a, const lanes *b, size_t n, lanes *out) {
  lanes sum = zero;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  *out = sum;
}

/* total += log x in the lanes of points. */
static void add_logs(const block *v, lanes *x, lanes *total) {
  for (int w = 0; w < SCL_LANES; w++) {
    *scl_lane(total, 0, w) += log(*scl_lane(x, 0, w)) * *((const double *)&v->present + w);
  }
}

/* ---- a block's results ---------------------------------------------------------------------- */

/* Adds the lower triangle of (Z' w) (Z' w)' to total. */
INLINED void add_products(block *v, lanes *total) {
  size_t rows = v->rows, columns = v->pass->columns;
  for (size_t c = 0; c < columns; c++) {
    lanes left, right;
    dot(v->z + c * rows, v->w, rows, &left);
    left *= v->present;
    for (size_t d = c; d < columns; d++) {
      dot(v->z + d * rows, v->w, rows, &right);
      *total++ += left * right;
    }
  }
}

/* b = K^-1 z~ - k w of derivatives; adds the sum of squares to *squares. */
INLINED void find_direction(block *v, lanes *squares) {
  const struct scl_vecchia_pass *pass = v->pass;
  size_t rows = v->rows;
  lanes all = zero;
  for (size_t i = 0; i < rows; i++) v->b[i] = zero;
  for (size_t q = 0; q < pass->combined; q++) {
    for (size_t i = 0; i < rows; i++) {
      v->c[i] = zero;
      for (size_t c = 0; c < pass->columns; c++) {
        v->c[i] += v->z[c * rows + i] * pass->combine[q * pass->columns + c];
      }
    }
    lanes e, weighted;
    dot(v->c, v->w, rows, &e);
    weighted = e * pass->factor[q];
    all += e * weighted;
    for (size_t i = 0; i < rows; i++) v->b[i] += v->c[i] * weighted;
  }
  *squares += all * v->present;
  solve_forward(v, v->b);
  solve_back(v, v->b);
  lanes half = 0.5 * (pass->logs + all);
  for (size_t i = 0; i < rows; i++) v->b[i] -= half * v->w[i];
}

/* a' b, of whose last part a half. */
INLINED void dot_halved(const block *v, const lanes *a, const lanes *b, lanes *out) {
  size_t last = v->rows - 1;
  dot(a, b, last, out);
  *out = (*out + 0.5 * a[last] * b[last]) * v->present;
}

/* The derivatives of the products by a parameter with L^-1 dK w. */
INLINED void add_product_slopes(const block *v, const lanes *u, lanes *total) {
  size_t rows = v->rows, columns = v->pass->columns;
  for (size_t c = 0; c < columns; c++) {
    lanes left, right, own = v->solved[c * rows + rows - 1];
    dot_halved(v, u, v->solved + c * rows, &left);
    for (size_t d = c; d < columns; d++) {
      dot_halved(v, u, v->solved + d * rows, &right);
      *total++ -= left * v->solved[d * rows + rows - 1] + own * right;
    }
  }
}

/* After the sums. */
INLINED void add_information(block *v, lanes *total) {
  size_t rows = v->rows, columns = v->pass->columns, count = v->pass->parameters;
  scl_vecchia_move(v);
  for (size_t r = 0; r < count; r++) solve_forward(v, v->moved + r * rows);
  memcpy(v->solved, v->z, columns * rows * sizeof(lanes));
  for (size_t c = 0; c < columns; c++) solve_forward(v, v->solved + c * rows);
  for (size_t r = 0; r < count; r++) {
    const lanes *u = v->moved + r * rows;
    *total++ -= 0.5 * u[rows - 1] * v->present;
    add_product_slopes(v, u, total);
    total += columns * (columns + 1) / 2;
  }
  for (size_t r = 0; r < count; r++) {
    for (size_t s = r; s < count; s++) {
      lanes sum;
      dot_halved(v, v->moved + r * rows, v->moved + s * rows, &sum);
      *total++ += sum;
    }
  }
}

/* total: after the order. */
INLINED void evaluate(block *v, lanes *total) {
  size_t rows = v->rows;
  v->order = 0;
  scl_vecchia_build(v);
  factor(v);
  if (v->order != 0) return;
  for (size_t i = 0; i < rows; i++) v->w[i] = zero;
  v->w[rows - 1] += 1.0;
  solve_back(v, v->w);
  if (v->pass->what == SCL_VECCHIA_WEIGHTS) return;
  add_logs(v, v->w + rows - 1, total);
  if (v->pass->what != SCL_VECCHIA_DERIVATIVES) {
    add_products(v, total + 1);
    if (v->pass->what == SCL_VECCHIA_INFORMATION) {
      add_information(v, total + 1 + v->pass->columns * (v->pass->columns + 1) / 2);
    }
    return;
  }
  find_direction(v, total + 1);
  scl_vecchia_differentiate(v, total + 2);
}

#ifdef SCL_WIDE
SCL_WIDE static void evaluate_wide(block *v, lanes *total) {
  evaluate(v, total);
}
#endif

static void evaluate_plain(block *v, lanes *total) {
  evaluate(v, total);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Lays the arrays of a block into memory, or with NULL says how many vectors they take. */
static size_t lay_out(block *v, const job *j, lanes *memory, lanes **total) {
  size_t terms = (size_t)j->pass->kernel->terms, at = 0;
  size_t strips = (3 * terms + 3) * v->pairs;
  lanes **rows[] = {&v->noise, &v->real, &v->by_noise, &v->quiet, &v->w, &v->b, &v->c};
  lanes **strip[] = {&v->sum, &v->weight, &v->by};
  lanes **term[] = {&v->value, &v->slope, &v->bend};
  size_t more = j->pass->what == SCL_VECCHIA_INFORMATION ? j->pass->parameters : 0;
  if (memory == NULL) {
    return (j->pass->p + 2 * j->pass->columns + more + 7 + v->rows) * v->rows + strips + j->total;
  }
  v->x = memory;
  v->z = v->x + j->pass->p * v->rows;
  at = (j->pass->p + j->pass->columns) * v->rows;
  for (int i = 0; i < 7; i++, at += v->rows) *rows[i] = memory + at;
  for (int i = 0; i < 3; i++, at += v->pairs) *strip[i] = memory + at;
  for (int i = 0; i < 3; i++, at += terms * v->pairs) *term[i] = memory + at;
  v->k = memory + at;
  v->moved = v->k + v->rows * v->rows;
  v->solved = v->moved + more * v->rows;
  *total = v->solved + j->pass->columns * v->rows;
  return 0;
}

static void write_weights(const block *v, size_t i) {
  for (int w = 0; w < SCL_LANES && i + (size_t)w < v->pass->n; w++) {
    double *to = v->pass->weights + (i + (size_t)w) * v->rows;
    for (size_t r = 0; r < v->rows; r++) to[r] = *scl_lane(v->w, r, w);
  }
}

/* The results of one chunk; ends at a block that is not positive definite. */
static void run_chunk(const job *j, block *v, size_t chunk, lanes *total, double *out) {
  size_t high = scl_min((chunk + 1) * CHUNK, j->pass->n);
  memset(total, 0, j->total * sizeof *total);
  out[0] = 0;
  for (size_t i = chunk * CHUNK; i < high; i += SCL_LANES) {
    read_points(v, i);
#ifdef SCL_WIDE
    if (scl_host_has_wide()) {
      evaluate_wide(v, total);
    } else
#endif
      evaluate_plain(v, total);
    if (v->order != 0) {
      out[0] = (double)(scl_min(i + (size_t)v->order - 1, j->pass->n - 1) + 1);
      return;
    }
    if (j->pass->what == SCL_VECCHIA_WEIGHTS) write_weights(v, i);
  }
  for (size_t r = 1; r < j->results; r++) {
    out[r] = 0;
    for (int w = 0; w < SCL_LANES; w++) out[r] += *scl_lane(total, r - 1, w);
  }
}

static block new_block(const struct scl_vecchia_pass *pass) {
  size_t rows = pass->m + 1;
  return (block){.pass = pass,
                 .exponential = scl_vector_function_of(SCL_OP_EXP),
                 .rows = rows,
                 .pairs = rows * (rows + 1) / 2};
}

static void run_part(void *arg, int part, int parts) {
  const job *j = arg;
  block v = new_block(j->pass);
  lanes *total = NULL;
  size_t start = (size_t)(j->memory + (size_t)part * j->bytes), aligned = (start + 63) / 64 * 64;
  lay_out(&v, j, (lanes *)aligned, &total);
  for (size_t chunk = j->from + (size_t)part; chunk < j->to; chunk += (size_t)parts) {
    run_chunk(j, &v, chunk, total, j->out + (chunk - j->from) * j->results);
  }
}

/* Adds the chunks' results in their order. */
static scl_status add_chunks(const job *j) {
  const struct scl_vecchia_pass *pass = j->pass;
  for (size_t chunk = 0; chunk < j->to - j->from; chunk++) {
    const double *of = j->out + chunk * j->results;
    if (of[0] != 0) {
      pass->out[0] = of[0];
      return SCL_OK;
    }
    for (size_t r = 1; r < j->results; r++) pass->out[r] += of[r];
  }
  return SCL_OK;
}

scl_status scl_host_vecchia(scl_context *ctx, const struct scl_vecchia_pass *pass) {
  (void)ctx;
  size_t chunks = scl_ceil_div(pass->n, CHUNK), results = scl_vecchia_results(pass);
  int threads = pass->n < THREADS_FROM ? 1 : scl_copy_threads();
  block shape = new_block(pass);
  job j = {.pass = pass, .results = results, .total = results};
  j.bytes = lay_out(&shape, &j, NULL, NULL) * sizeof(lanes) + 128;
  j.memory = malloc((size_t)threads * j.bytes);
  j.out = malloc(CHUNKS * results * sizeof(double));
  scl_team *team = NULL;
  scl_status status = SCL_OK;
  if (j.memory == NULL || j.out == NULL) {
    status = scl_fail_memory((size_t)threads * j.bytes, 0, "a workspace");
    goto done;
  }
  for (size_t r = 0; r < results; r++) pass->out[r] = 0;
  team = threads > 1 ? scl_team_start(threads) : NULL;
  for (; j.from < chunks && pass->out[0] == 0; j.from = j.to) {
    j.to = scl_min(j.from + CHUNKS, chunks);
    scl_team_run(team, run_part, &j);
    SCL_GO(add_chunks(&j));
    SCL_GO(scl_poll());
  }
done:
  scl_team_stop(team);
  free(j.memory);
  free(j.out);
  return status;
}
