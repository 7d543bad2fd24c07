/* Numeric work on sparse factors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "ops/sparse_parts.h"

static scl_sparse_blas blas;

void scl_sparse_set_blas(const scl_sparse_blas *given) {
  blas = *given;
}

size_t scl_sparse_factor_order(const scl_sparse_factor *f) {
  return f->n;
}
size_t scl_sparse_factor_count(const scl_sparse_factor *f) {
  return f->count;
}
double scl_sparse_factor_size(const scl_sparse_factor *f) {
  return (double)f->size;
}

/* ---- dense parts ---------------------------------------------------------------------------- */

/* Below these sizes a call of BLAS takes longer than plain loops. */
enum { FEW_COLUMNS = 8, FEW_NUMBERS = 512 };

static bool is_large(size_t m, size_t c) {
  return blas.gemm != NULL && c >= FEW_COLUMNS && m * c >= FEW_NUMBERS;
}

/* The factor of a panel, m x c. Returns 1 + the column that has no positive pivot, or 0. */
static size_t factor_panel(double *a, size_t m, size_t c) {
  if (is_large(m, c)) {
    const int info = blas.potrf('L', (int)c, a, (int)m);
    if (info != 0) return (size_t)info;
    if (m > c) blas.trsm('R', 'L', 'T', (int)(m - c), (int)c, 1.0, a, (int)m, a + c, (int)m);
    return 0;
  }
  for (size_t j = 0; j < c; j++) {
    double *y = a + j * m;
    for (size_t k = 0; k < j; k++) {
      const double *x = a + k * m, by = x[j];
      for (size_t i = j; i < m; i++) y[i] -= by * x[i];
    }
    if (!(y[j] > 0.0)) return j + 1;
    const double root = sqrt(y[j]), inverse = 1.0 / root;
    y[j] = root;
    for (size_t i = j + 1; i < m; i++) y[i] *= inverse;
  }
  return 0;
}

/* u -= l l' for the last r rows l of a panel; the lower triangle. */
static void subtract_square(const double *a, size_t m, size_t c, double *u, size_t r) {
  const double *l = a + c;
  if (is_large(r, c)) {
    blas.syrk('L', 'N', (int)r, (int)c, -1.0, l, (int)m, 1.0, u, (int)r);
    return;
  }
  for (size_t j = 0; j < r; j++) {
    double *y = u + j * r;
    for (size_t k = 0; k < c; k++) {
      const double *x = l + k * m, by = x[j];
      for (size_t i = j; i < r; i++) y[i] -= by * x[i];
    }
  }
}

/* ---- factor --------------------------------------------------------------------------------- */

/* Adds what a child, whose rows' part is `from`, takes from its parent's panel and rows' part. */
static void take_child(const scl_sparse_factor *f, const scl_supernode *child, const double *from,
                       const scl_supernode *s, double *u) {
  const uint32_t *place = f->place + child->at;
  const size_t c = s->columns, m = c + s->rows, r = child->rows;
  double *panel = f->x + s->panel;
  for (size_t j = 0; j < r; j++) {
    const size_t p = place[j];
    double *to = p < c ? panel + p * m : u + (p - c) * s->rows;
    const double *x = from + j * r;
    const size_t less = p < c ? 0 : c;
    for (size_t i = j; i < r; i++) to[place[i] - less] += x[i];
  }
}

static void fill_matrix(scl_sparse_factor *f, const double *x, double shift) {
  memset(f->x, 0, f->size * sizeof *f->x);
  for (size_t k = 0; k < f->count; k++) f->x[f->to[k]] += x[k];
  if (shift == 0.0) return;
  for (size_t j = 0; j < f->n; j++) f->x[f->diagonal[j]] += shift;
}

scl_status scl_sparse_factorize(scl_sparse_factor *f, const double *x, double shift) {
  double *top = f->room; /* of the stack */
  f->ready = false;
  fill_matrix(f, x, shift);
  for (size_t k = 0; k < f->nodes; k++) {
    const scl_supernode *s = &f->node[k];
    const size_t c = s->columns, r = s->rows, m = c + r;
    double *u = top, *from = top;
    memset(u, 0, r * r * sizeof *u);
    for (uint32_t i = s->child; i != SCL_SPARSE_ROOT; i = f->node[i].next) {
      const scl_supernode *child = &f->node[i];
      from -= (size_t)child->rows * child->rows;
      take_child(f, child, from, s, u);
    }
    const size_t bad = factor_panel(f->x + s->panel, m, c);
    if (bad > 0) {
      return scl_fail_index(SCL_E_NOT_PD, (int64_t)f->order[s->from + bad - 1] + 1,
                            "the matrix is not positive definite");
    }
    if (r > 0) subtract_square(f->x + s->panel, m, c, u, r);
    if (from != u) memmove(from, u, r * r * sizeof *u);
    top = from + r * r;
    if (k % 1024 == 0 || c > 256) SCL_TRY(scl_poll());
  }
  f->ready = true;
  return SCL_OK;
}

static scl_status require_factor(const scl_sparse_factor *f) {
  return f->ready ? SCL_OK : scl_fail_argument("factor", "internal: there is no factor");
}

scl_status scl_sparse_log_det(const scl_sparse_factor *f, double *to) {
  double sum = 0.0;
  SCL_TRY(require_factor(f));
  for (size_t j = 0; j < f->n; j++) sum += log(f->x[f->diagonal[j]]);
  *to = 2.0 * sum;
  return SCL_OK;
}

/* ---- solutions ------------------------------------------------------------------------------ */

static void solve_forward(const scl_sparse_factor *f, double *y) {
  for (size_t k = 0; k < f->nodes; k++) {
    const scl_supernode *s = &f->node[k];
    const size_t c = s->columns, r = s->rows, m = c + r;
    const uint32_t *row = f->row + s->at;
    double *own = y + s->from;
    for (size_t j = 0; j < c; j++) {
      const double *l = f->x + s->panel + j * m, by = own[j] /= l[j];
      for (size_t i = j + 1; i < c; i++) own[i] -= by * l[i];
      for (size_t i = 0; i < r; i++) y[row[i]] -= by * l[c + i];
    }
  }
}

static void solve_backward(const scl_sparse_factor *f, double *y) {
  for (size_t k = f->nodes; k-- > 0;) {
    const scl_supernode *s = &f->node[k];
    const size_t c = s->columns, r = s->rows, m = c + r;
    const uint32_t *row = f->row + s->at;
    double *own = y + s->from;
    for (size_t j = c; j-- > 0;) {
      const double *l = f->x + s->panel + j * m;
      double sum = own[j];
      for (size_t i = 0; i < r; i++) sum -= l[c + i] * y[row[i]];
      for (size_t i = j + 1; i < c; i++) sum -= l[i] * own[i];
      own[j] = sum / l[j];
    }
  }
}

scl_status scl_sparse_solve(scl_sparse_factor *f, double *b, size_t k) {
  SCL_TRY(require_factor(f));
  for (size_t j = 0; j < k; j++) {
    double *x = b + j * f->n, *y = f->vector;
    for (size_t i = 0; i < f->n; i++) y[i] = x[f->order[i]];
    solve_forward(f, y);
    solve_backward(f, y);
    for (size_t i = 0; i < f->n; i++) x[f->order[i]] = y[i];
    SCL_TRY(scl_poll());
  }
  return SCL_OK;
}

/* y <- L' y */
static void times_transpose(const scl_sparse_factor *f, double *y) {
  for (size_t k = 0; k < f->nodes; k++) {
    const scl_supernode *s = &f->node[k];
    const size_t c = s->columns, r = s->rows, m = c + r;
    const uint32_t *row = f->row + s->at;
    double *own = y + s->from;
    for (size_t j = 0; j < c; j++) {
      const double *l = f->x + s->panel + j * m;
      double sum = l[j] * own[j];
      for (size_t i = j + 1; i < c; i++) sum += l[i] * own[i];
      for (size_t i = 0; i < r; i++) sum += l[c + i] * y[row[i]];
      own[j] = sum;
    }
  }
}

scl_status scl_sparse_apply_half(const scl_sparse_factor *f, scl_sparse_half half, const double *x,
                                 double *to, double *room) {
  SCL_TRY(require_factor(f));
  if (half == SCL_SPARSE_BACKWARD) {
    memcpy(room, x, f->n * sizeof *room);
    solve_backward(f, room);
    for (size_t i = 0; i < f->n; i++) to[f->order[i]] = room[i];
    return SCL_OK;
  }
  for (size_t i = 0; i < f->n; i++) to[i] = x[f->order[i]];
  if (half == SCL_SPARSE_FORWARD) solve_forward(f, to);
  if (half == SCL_SPARSE_TIMES) times_transpose(f, to);
  return SCL_OK;
}

/* ---- inverse -------------------------------------------------------------------------------- */

/* y, r x c, becomes the solution of y l = (y as given), l the factor of the own columns. */
static void solve_right(const double *l, size_t m, size_t c, double *y, size_t r) {
  if (is_large(r, c)) {
    blas.trsm('R', 'L', 'N', (int)r, (int)c, 1.0, l, (int)m, y, (int)r);
    return;
  }
  for (size_t j = c; j-- > 0;) {
    double *to = y + j * r;
    for (size_t k = j + 1; k < c; k++) {
      const double *x = y + k * r, by = l[k + j * m];
      for (size_t i = 0; i < r; i++) to[i] -= by * x[i];
    }
    const double inverse = 1.0 / l[j + j * m];
    for (size_t i = 0; i < r; i++) to[i] *= inverse;
  }
}

/* z += sign op(a) b: op(a) is m x k, b is k x n. */
static void add_product(bool transposed, size_t m, size_t n, size_t k, double sign, const double *a,
                        size_t lda, const double *b, size_t ldb, double *z, size_t ldz) {
  if (is_large(m < k ? k : m, n)) {
    blas.gemm(transposed ? 'T' : 'N', 'N', (int)m, (int)n, (int)k, sign, a, (int)lda, b, (int)ldb,
              1.0, z, (int)ldz);
    return;
  }
  for (size_t j = 0; j < n; j++) {
    double *to = z + j * ldz;
    if (transposed) {
      for (size_t i = 0; i < m; i++) {
        double sum = 0.0;
        for (size_t l = 0; l < k; l++) sum += a[l + i * lda] * b[l + j * ldb];
        to[i] += sign * sum;
      }
      continue;
    }
    for (size_t l = 0; l < k; l++) {
      const double *x = a + l * lda, by = sign * b[l + j * ldb];
      for (size_t i = 0; i < m; i++) to[i] += by * x[i];
    }
  }
}

/* z, c x c with leading dimension m: the inverse of l l'. w: room for c x c. */
static void invert_own(const double *l, size_t m, size_t c, double *z, double *w) {
  if (is_large(c, c)) {
    for (size_t j = 0; j < c; j++) memcpy(z + j * (m + 1), l + j * (m + 1), (c - j) * sizeof *z);
    blas.trtri('L', (int)c, z, (int)m);
    blas.lauum('L', (int)c, z, (int)m);
    for (size_t j = 0; j < c; j++) {
      for (size_t i = j + 1; i < c; i++) z[j + i * m] = z[i + j * m];
    }
    return;
  }
  memset(w, 0, c * c * sizeof *w);
  for (size_t j = 0; j < c; j++) w[j * (c + 1)] = 1.0;
  solve_right(l, m, c, w, c); /* l^-1 */
  for (size_t j = 0; j < c; j++) memset(z + j * m, 0, c * sizeof *z);
  add_product(true, c, c, c, 1.0, w, c, w, c, z, m);
}

/* The inverse at the rows of a supernode, m x m, of which the part of the rows behind its own is
 * there already. w: room for r x c and c x c. */
static void invert_panel(const double *l, size_t c, size_t r, double *z, double *w) {
  const size_t m = c + r;
  double *y = w + c * c;
  invert_own(l, m, c, z, w);
  if (r == 0) return;
  for (size_t j = 0; j < c; j++) {
    memcpy(y + j * r, l + c + j * m, r * sizeof *y);
    memset(z + c + j * m, 0, r * sizeof *z);
  }
  solve_right(l, m, c, y, r);
  add_product(false, r, c, r, -1.0, z + c + c * m, m, y, r, z + c, m);
  add_product(true, c, c, r, -1.0, y, r, z + c, m, z, m);
  for (size_t j = 0; j < c; j++) {
    for (size_t i = 0; i < r; i++) z[j + (c + i) * m] = z[c + i + j * m];
  }
}

/* A parent's block of the inverse stays until its last child, the first in order, has taken its
 * part. */
static scl_status invert(const scl_sparse_factor *f, double *x, double *stack, double *w,
                         double **block) {
  for (size_t k = f->nodes; k-- > 0;) {
    const scl_supernode *s = &f->node[k];
    const size_t c = s->columns, r = s->rows, m = c + r;
    double *z = stack, *at = stack;
    if (s->parent != SCL_SPARSE_ROOT) {
      const scl_supernode *p = &f->node[s->parent];
      const size_t order = (size_t)p->columns + p->rows;
      const double *from = block[s->parent];
      const uint32_t *place = f->place + s->at;
      z = block[s->parent] + order * order;
      at = s->next == SCL_SPARSE_ROOT ? block[s->parent] : z;
      for (size_t j = 0; j < r; j++) {
        const double *column = from + place[j] * order;
        for (size_t i = 0; i < r; i++) z[c + i + (c + j) * m] = column[place[i]];
      }
    }
    invert_panel(f->x + s->panel, c, r, z, w);
    memcpy(x + s->panel, z, m * c * sizeof *x);
    if (at != z) memmove(at, z, m * m * sizeof *z);
    block[k] = at;
    if (k % 1024 == 0 || c > 256) SCL_TRY(scl_poll());
  }
  return SCL_OK;
}

scl_status scl_sparse_inverse(const scl_sparse_factor *f, double *to) {
  size_t most = 1;
  SCL_TRY(require_factor(f));
  for (size_t k = 0; k < f->nodes; k++) {
    const size_t c = f->node[k].columns, all = c * (c + f->node[k].rows);
    if (all > most) most = all;
  }
  const size_t numbers = f->size + f->inverse_stack + most + 1;
  double *x = malloc(numbers * sizeof *x), **block = malloc((f->nodes + 1) * sizeof *block);
  scl_status status = SCL_OK;
  if (x == NULL || block == NULL) {
    status = scl_fail_memory(numbers * sizeof *x, 0, "a selected inverse");
  } else {
    status = invert(f, x, x + f->size, x + f->size + f->inverse_stack, block);
  }
  for (size_t k = 0; k < f->count && status == SCL_OK; k++) to[k] = x[f->to[k]];
  free(x);
  free(block);
  return status;
}
