/* Vecchia's approximation on the host (engine/pass/vecchia.h): LANES points side by side. */
#include "engine/host/vecchia.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"

enum {
  CHUNK = 512,         /* points whose results are summed together, a multiple of SCL_LANES */
  CHUNK_GROUPED = 64,  /* and blocks */
  CHUNKS = 256,        /* of a round, between two polls */
  THREADS_FROM = 1024, /* points */
  THREADS_FROM_GROUPED = 256
};

static const lanes zero = {0};

typedef struct {
  const struct scl_vecchia_pass *pass;
  size_t results, total; /* of a chunk: all; those that the threads add up */
  size_t chunk;          /* its points or blocks */
  size_t from, to;       /* chunks of this round */
  double *out;           /* of each chunk of the round */
  char *memory;
  size_t bytes; /* for each thread */
} job;

/* ---- a block's points ----------------------------------------------------------------------- */

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
      scl_vecchia_read(v, record, r, w, real, quiet);
    }
    scl_vecchia_read(v, itself, pass->m, w, true, pass->quiet);
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
  scl_vecchia_forward(v, rows - 1, v->b);
  scl_vecchia_back(v, rows - 1, v->b);
  lanes half = 0.5 * (pass->logs + all);
  for (size_t i = 0; i < rows; i++) v->b[i] -= half * v->w[i];
}

/* a' b, with half of its last term. */
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

/* weight = b' dK w by dK: twice its half for pairs off the diagonal. */
INLINED void weigh_pairs(const block *v) {
  size_t rows = v->rows;
  lanes *weight = v->weight;
  for (size_t j = 0; j < rows; j++) {
    lanes bj = v->b[j] * v->present, wj = v->w[j] * v->present;
    *weight++ = v->b[j] * wj;
    for (size_t i = j + 1; i < rows; i++) *weight++ = v->b[i] * wj + bj * v->w[i];
  }
}

/* After the sums. */
INLINED void add_information(block *v, lanes *total) {
  size_t rows = v->rows, columns = v->pass->columns, count = v->pass->parameters;
  v->width = 1;
  v->last[0] = rows - 1;
  scl_vecchia_move(v, v->w);
  for (size_t r = 0; r < count; r++) scl_vecchia_forward(v, rows - 1, v->moved + r * rows);
  memcpy(v->solved, v->z, columns * rows * sizeof(lanes));
  for (size_t c = 0; c < columns; c++) scl_vecchia_forward(v, rows - 1, v->solved + c * rows);
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
  scl_vecchia_factor(v);
  if (v->order != 0) return;
  for (size_t i = 0; i < rows; i++) v->w[i] = zero;
  v->w[rows - 1] += 1.0;
  scl_vecchia_back(v, rows - 1, v->w);
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
  weigh_pairs(v);
  scl_vecchia_differentiate(v, total + 2);
}

SCL_BY_WIDTH(static, evaluate_points, evaluate, (block * v, lanes *total), (v, total))

/* ---- threads -------------------------------------------------------------------------------- */

/* Lays the arrays of a block into memory, or with NULL says how many vectors they take. */
static size_t lay_out(block *v, const job *j, lanes *memory, lanes **total) {
  size_t terms = (size_t)j->pass->kernel->terms, at = 0;
  size_t strips = (3 * terms + 3) * v->pairs;
  lanes **rows[] = {&v->noise, &v->real, &v->by_noise, &v->quiet, &v->w, &v->b, &v->c};
  lanes **strip[] = {&v->sum, &v->weight, &v->by};
  lanes **term[] = {&v->value, &v->slope, &v->bend};
  bool grouped = j->pass->grouped;
  size_t wide = grouped ? SCL_VECCHIA_WIDTH : 1;
  size_t more = j->pass->what == SCL_VECCHIA_INFORMATION ? j->pass->parameters * wide : 0;
  size_t special = grouped ? 2 + SCL_VECCHIA_WIDTH + j->pass->combined : 0;
  if (memory == NULL) {
    return (j->pass->p + 2 * j->pass->columns + more + special + 7 + v->rows) * v->rows + strips +
           j->total;
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
  v->member = v->solved + j->pass->columns * v->rows;
  v->place = v->member + v->rows;
  v->all_w = v->place + v->rows;
  v->combined = v->all_w + SCL_VECCHIA_WIDTH * v->rows;
  *total = v->member + special * v->rows;
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
  size_t high = scl_min((chunk + 1) * j->chunk, j->pass->n);
  memset(total, 0, j->total * sizeof *total);
  out[0] = 0;
  for (size_t i = chunk * j->chunk; i < high; i += SCL_LANES) {
    if (j->pass->grouped) {
      scl_vecchia_read_blocks(v, i);
      scl_vecchia_evaluate_blocks(v, total);
    } else {
      read_points(v, i);
      evaluate_points(v, total);
    }
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
  size_t chunk = pass->grouped ? CHUNK_GROUPED : CHUNK, results = scl_vecchia_results(pass);
  size_t chunks = scl_ceil_div(pass->n, chunk);
  int threads =
      pass->n < (pass->grouped ? THREADS_FROM_GROUPED : THREADS_FROM) ? 1 : scl_copy_threads();
  block shape = new_block(pass);
  job j = {.pass = pass, .results = results, .total = results, .chunk = chunk};
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
