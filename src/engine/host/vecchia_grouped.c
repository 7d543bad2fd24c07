/* Blocks of several members on the host (engine/pass/vecchia.h): LANES blocks of nearly the same
 * size side by side, one factor of each for all its members. */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "engine/host/vecchia.h"

static const lanes zero = {0};

/* ---- a block's rows ------------------------------------------------------------------------- */

/* The record of the last row again for rows beyond the block's size. */
static void read_block(block *v, const int32_t *entry, size_t size, int w, bool present) {
  const struct scl_vecchia_pass *pass = v->pass;
  const double *from = scl_host_at(pass->records);
  size_t members = 0;
  for (size_t r = 0; r < v->rows; r++) {
    int32_t code = entry[scl_min(r, size - 1)];
    bool member = present && r < size && code % 2 == 1;
    scl_vecchia_read(v, from + (size_t)(code / 2) * pass->records.ld, r, w, r < size, false);
    *scl_lane(v->member, r, w) = member ? 1.0 : 0.0;
    if (member) *scl_lane(v->place, members++, w) = (double)r;
  }
  for (size_t q = members; q < v->rows; q++) *scl_lane(v->place, q, w) = -1.0;
  v->members = scl_max(v->members, members);
}

void scl_vecchia_read_blocks(block *v, size_t i) {
  const struct scl_vecchia_pass *pass = v->pass;
  const int32_t *entry[SCL_LANES];
  size_t size[SCL_LANES], most = pass->m + 1;
  v->rows = 1;
  v->members = 0;
  for (int w = 0; w < SCL_LANES; w++) {
    size_t at = scl_min(i + (size_t)w, pass->n - 1);
    entry[w] = (const int32_t *)(scl_host_at(pass->neighbours) + at * pass->neighbours.ld);
    for (size[w] = 1; size[w] < most && entry[w][size[w]] >= 0;) size[w]++;
    v->rows = scl_max(v->rows, size[w]);
  }
  v->pairs = v->rows * (v->rows + 1) / 2;
  for (int w = 0; w < SCL_LANES; w++) {
    read_block(v, entry[w], size[w], w, i + (size_t)w < pass->n);
  }
}

/* ---- loops for wide processors -------------------------------------------------------------- */

INLINED void multiply(const lanes *a, const lanes *b, size_t n, lanes *out) {
  lanes sum = zero;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  *out = sum;
}

INLINED void weigh(const block *v, size_t last) {
  size_t rows = v->rows;
  lanes *weight = v->weight;
  for (size_t j = 0; j <= last; weight += rows - j++) {
    lanes bj = v->b[j], wj = v->w[j];
    weight[0] += bj * wj;
    for (size_t i = j + 1; i <= last; i++) weight[i - j] += v->b[i] * wj + bj * v->w[i];
  }
}

/* out = a' b */
SCL_BY_WIDTH(static, dot, multiply, (const lanes *a, const lanes *b, size_t n, lanes *out),
             (a, b, n, out))

/* Adds b' dK w by dK to the weights: twice its half for pairs off the diagonal. */
SCL_BY_WIDTH(static, weigh_member, weigh, (const block *v, size_t last), (v, last))

/* ---- likelihood ----------------------------------------------------------------------------- */

/* solved = L^-1 Z; adds the logarithms. */
static void solve_columns(block *v, lanes *logs) {
  size_t rows = v->rows, columns = v->pass->columns;
  memcpy(v->solved, v->z, columns * rows * sizeof(lanes));
  for (size_t c = 0; c < columns; c++) scl_vecchia_forward(v, rows - 1, v->solved + c * rows);
  for (size_t i = 0; i < rows; i++) {
    for (int w = 0; w < SCL_LANES; w++) {
      if (*scl_lane(v->member, i, w) == 0) continue;
      *scl_lane(logs, 0, w) -= log(*scl_lane(v->k, i + i * rows, w));
    }
  }
}

static void add_products(const block *v, lanes *total) {
  size_t rows = v->rows, columns = v->pass->columns;
  for (size_t c = 0; c < columns; c++) {
    for (size_t i = 0; i < rows; i++) v->c[i] = v->member[i] * v->solved[c * rows + i];
    for (size_t d = c; d < columns; d++) {
      lanes sum;
      dot(v->c, v->solved + d * rows, rows, &sum);
      *total++ += sum;
    }
  }
}

/* The last row of the q-th members. */
static size_t last_row(const block *v, size_t q) {
  double last = 0;
  for (int w = 0; w < SCL_LANES; w++) {
    double place = *scl_lane(v->place, q, w);
    if (place > last) last = place;
  }
  return (size_t)last;
}

/* to = x in the rows of the q-th members, 0 in lanes without one. */
static void pick(const block *v, size_t q, lanes *x, lanes *to) {
  *to = zero;
  for (int w = 0; w < SCL_LANES; w++) {
    double place = *scl_lane(v->place, q, w);
    if (place >= 0) *scl_lane(to, 0, w) = *scl_lane(x, (size_t)place, w);
  }
}

/* The unit vectors of the q-th members. */
static void set_units(const block *v, size_t q, lanes *x) {
  memset(x, 0, v->rows * sizeof(lanes));
  for (int w = 0; w < SCL_LANES; w++) {
    double place = *scl_lane(v->place, q, w);
    if (place >= 0) *scl_lane(x, (size_t)place, w) = 1.0;
  }
}

/* The first `size` rows of x := 0 after those of the q-th members, and times `last` in them. */
static void cut(const block *v, size_t q, size_t size, double last, lanes *x) {
  for (int w = 0; w < SCL_LANES; w++) {
    double place = *scl_lane(v->place, q, w);
    if (place >= 0) *scl_lane(x, (size_t)place, w) *= last;
    for (size_t i = (size_t)(place + 1.0); i < size; i++) *scl_lane(x, i, w) = 0.0;
  }
}

/* ---- derivatives ---------------------------------------------------------------------------- */

/* The columns of `combine`, as L^-1 of them. */
static void combine_columns(const block *v) {
  const struct scl_vecchia_pass *pass = v->pass;
  size_t rows = v->rows;
  memset(v->combined, 0, pass->combined * rows * sizeof(lanes));
  for (size_t q = 0; q < pass->combined; q++) {
    lanes *to = v->combined + q * rows;
    for (size_t c = 0; c < pass->columns; c++) {
      double by = pass->combine[q * pass->columns + c];
      const lanes *from = v->solved + c * rows;
      for (size_t i = 0; i < rows; i++) to[i] += by * from[i];
    }
  }
}

static void add_derivatives(block *v, lanes *total) {
  const struct scl_vecchia_pass *pass = v->pass;
  size_t rows = v->rows;
  combine_columns(v);
  memset(v->weight, 0, v->pairs * sizeof(lanes));
  for (size_t q = 0; q < v->members; q++) {
    size_t last = last_row(v, q);
    lanes all = zero;
    set_units(v, q, v->w);
    memset(v->b, 0, rows * sizeof(lanes));
    for (size_t c = 0; c < pass->combined; c++) {
      lanes e, weighted, *from = v->combined + c * rows;
      pick(v, q, from, &e);
      weighted = e * pass->factor[c];
      all += e * weighted;
      for (size_t i = 0; i <= last; i++) v->b[i] += from[i] * weighted;
    }
    *total += all;
    cut(v, q, last + 1, 1.0, v->b);
    scl_vecchia_back(v, last, v->w);
    scl_vecchia_back(v, last, v->b);
    lanes half = 0.5 * (pass->logs + all);
    for (size_t i = 0; i <= last; i++) v->b[i] -= half * v->w[i];
    weigh_member(v, last);
  }
  scl_vecchia_differentiate(v, total + 1);
}

/* ---- information ---------------------------------------------------------------------------- */

/* From L^-1 dK w of the q-th members by all parameters, at v->moved + (r * width + at) * rows. */
static void inform(const block *v, size_t q, size_t at, lanes *total) {
  size_t rows = v->rows, columns = v->pass->columns, count = v->pass->parameters;
  size_t size = last_row(v, q) + 1, sums = 1 + columns * (columns + 1) / 2;
  lanes *information = total + count * sums;
  for (size_t r = 0; r < count; r++) {
    const lanes *u = v->moved + (r * v->width + at) * rows;
    lanes *by = total + r * sums;
    memcpy(v->c, u, size * sizeof(lanes));
    cut(v, q, size, 0.5, v->c);
    lanes own;
    pick(v, q, v->c, &own);
    *by++ -= own;
    for (size_t c = 0; c < columns; c++) {
      lanes left, right, e, f;
      pick(v, q, v->solved + c * rows, &e);
      dot(v->c, v->solved + c * rows, size, &left);
      for (size_t d = c; d < columns; d++) {
        pick(v, q, v->solved + d * rows, &f);
        dot(v->c, v->solved + d * rows, size, &right);
        *by++ -= left * f + e * right;
      }
    }
    for (size_t s = r; s < count; s++) {
      lanes sum;
      dot(v->c, v->moved + (s * v->width + at) * rows, size, &sum);
      *information++ += sum;
    }
  }
}

/* After the sums. */
static void add_information(block *v, lanes *total) {
  size_t rows = v->rows, count = v->pass->parameters;
  for (size_t first = 0; first < v->members; first += SCL_VECCHIA_WIDTH) {
    v->width = scl_min(SCL_VECCHIA_WIDTH, v->members - first);
    for (size_t at = 0; at < v->width; at++) {
      lanes *w = v->all_w + at * rows;
      v->last[at] = last_row(v, first + at);
      set_units(v, first + at, w);
      scl_vecchia_back(v, v->last[at], w);
    }
    scl_vecchia_move(v, v->all_w);
    for (size_t at = 0; at < v->width; at++) {
      for (size_t r = 0; r < count; r++) {
        scl_vecchia_forward(v, v->last[at], v->moved + (r * v->width + at) * rows);
      }
      inform(v, first + at, at, total);
    }
  }
}

void scl_vecchia_evaluate_blocks(block *v, lanes *total) {
  size_t columns = v->pass->columns;
  v->order = 0;
  scl_vecchia_build(v);
  scl_vecchia_factor(v);
  if (v->order != 0) return;
  solve_columns(v, total);
  if (v->pass->what == SCL_VECCHIA_DERIVATIVES) {
    add_derivatives(v, total + 1);
    return;
  }
  add_products(v, total + 1);
  if (v->pass->what == SCL_VECCHIA_INFORMATION) {
    add_information(v, total + 1 + columns * (columns + 1) / 2);
  }
}
