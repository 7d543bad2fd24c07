/* Sparse Jacobians of products, cumulative sums and solutions of linear equations. Entries of an
 * operand's Jacobian times the other operand are listed one by one; where many of them meet in the
 * same sums, they are put into a dense matrix, which is multiplied as a whole. */
#include <stdlib.h>
#include <string.h>

#include "program/sparse_parts.h"

/* A listed number takes as long as this many numbers of a dense product; below FEW_LISTED there is
 * no dense one. */
enum { NONE = SCL_SPARSE_NONE, COST_LISTED = 4, FEW_LISTED = 512 };

typedef struct {
  size_t m, k, n;
  bool ta, tb;
} product;

/* Element `at` of one operand: its index in the sums, and its row of the left operand, or column of
 * the right one. */
static void split_place(const product *p, bool left, size_t at, size_t *inner, size_t *outer) {
  const bool flipped = left ? p->ta : p->tb;
  const size_t height = left ? (flipped ? p->k : p->m) : (flipped ? p->n : p->k);
  const size_t i = at % height, j = at / height;
  *outer = left == flipped ? j : i;
  *inner = left == flipped ? i : j;
}

/* Such an element is in `count` elements of the product: the row of number c of these, and the
 * index of its factor in the other operand. */
static size_t row_of(const product *p, bool left, size_t outer, size_t c) {
  return left ? outer + c * p->m : c + outer * p->m;
}
static size_t factor_of(const product *p, bool left, size_t inner, size_t c) {
  if (left) return p->tb ? c + inner * p->n : inner + c * p->k;
  return p->ta ? inner + c * p->k : c + inner * p->m;
}

/* Whether the number is a zero, whatever the parameters are. */
static bool is_zero(const scl_jacobian *w, int x, size_t i) {
  const scl_value *v = &w->t->value[x];
  return v->kind == SCL_VALUE_DATA && w->t->data[v->at[0]].numbers[i] == 0.0;
}

/* ---- one by one ------------------------------------------------------------------------------ */

/* The entries of one operand's term, times the other operand. */
static void list_term(scl_jacobian *w, int value, const product *p, bool left, int term,
                      int other) {
  const scl_entries *e = scl_entries_of(w, term);
  const size_t each = left ? p->n : p->m, total = e->length * each;
  int from = w->term[term].value;
  scl_listing l;
  if (!scl_listing_begin(w, value, total, &l)) return;
  size_t *factor = scl_sparse_room(w, total, sizeof *factor);
  for (size_t i = 0; factor != NULL && i < e->length; i++) {
    size_t inner, outer;
    split_place(p, left, scl_entries_row(e, i), &inner, &outer);
    for (size_t c = 0; c < each; c++) {
      factor[l.count] = factor_of(p, left, inner, c);
      if (is_zero(w, other, factor[l.count])) continue;
      scl_listing_put(&l, row_of(p, left, outer, c), e->column[i], i);
    }
  }
  if (scl_tape_length(w->t, from) > 1) from = scl_sparse_pick(w, from, l.pick, l.count);
  const int factors = scl_sparse_pick(w, other, factor, l.count);
  const int product = l.count > 0 ? scl_tape_binary(w->t, SCL_OP_MUL, factors, from) : 0;
  scl_sparse_add(w, value, scl_listing_entries(w, &l), product);
  scl_listing_end(&l);
  free(factor);
}

/* ---- as a dense matrix ----------------------------------------------------------------------- */

/* The Jacobian of an operand: p->k rows, by which the product sums, and a column for each `outer`
 * index and each of the `used` parameters; w->mark has their places. */
typedef struct {
  const product *p;
  bool left;
  int other;                       /* the other operand, or SOLUTION, SUMS or SUMS_BACK */
  size_t outer, each, used, total; /* entries */
  uint32_t *column;                /* of the used ones */
} grid;

enum { SOLUTION = -1, SUMS = -2, SUMS_BACK = -3 };

static void end_grid(scl_jacobian *w, grid *g) {
  for (size_t i = 0; g->column != NULL && i < g->used; i++) w->mark[g->column[i]] = UINT32_MAX;
  free(g->column);
}

static void measure(scl_jacobian *w, const product *p, bool left, int x, int other, grid *g) {
  *g = (grid){p, left, other, left ? p->m : p->n, left ? p->n : p->m, 0, 0, NULL};
  for (int k = w->first[x]; k != NONE; k = w->term[k].next) {
    g->total += scl_entries_of(w, k)->length;
  }
  const size_t most = g->total < w->columns ? g->total : w->columns;
  g->column = scl_sparse_room(w, most, sizeof *g->column);
  for (int k = w->first[x]; g->column != NULL && k != NONE; k = w->term[k].next) {
    const scl_entries *e = scl_entries_of(w, k);
    for (size_t i = 0; i < e->length; i++) {
      if (w->mark[e->column[i]] != UINT32_MAX) continue;
      w->mark[e->column[i]] = (uint32_t)g->used;
      g->column[g->used++] = e->column[i];
    }
  }
}

/* The share of numbers that are not known to be zero. */
static double share_of(const scl_jacobian *w, int x) {
  const size_t length = scl_tape_length(w->t, x);
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += !is_zero(w, x, i);
  return length > 0 ? (double)count / (double)length : 0.0;
}

static size_t place_of(const scl_jacobian *w, const grid *g, const scl_entries *e, size_t i,
                       size_t *inner) {
  size_t outer;
  split_place(g->p, g->left, scl_entries_row(e, i), inner, &outer);
  return outer + g->outer * w->mark[e->column[i]];
}

/* The dense matrix as a value. */
static int fill_grid(scl_jacobian *w, int x, const grid *g) {
  const size_t size = g->p->k * g->outer * g->used;
  double *to = scl_sparse_room(w, g->total, sizeof *to);
  size_t at = 0;
  bool same = g->total == size;
  for (int k = w->first[x]; to != NULL && k != NONE; k = w->term[k].next) {
    const scl_entries *e = scl_entries_of(w, k);
    for (size_t i = 0; i < e->length; i++, at++) {
      size_t inner;
      const size_t place = place_of(w, g, e, i, &inner);
      to[at] = (double)(inner + place * g->p->k);
      same = same && to[at] == (double)at;
    }
  }
  const int all = scl_sparse_concat(w, x);
  if (same) {
    free(to);
    return all;
  }
  return scl_tape_scatter(w->t, all, scl_tape_own_data(w->t, to, g->total), size);
}

/* Whether row `inner` of the matrix is in row c of the product. */
static bool is_in(const scl_jacobian *w, const grid *g, size_t inner, size_t c) {
  if (g->other == SUMS) return c >= inner;
  if (g->other == SUMS_BACK) return c <= inner;
  return g->other == SOLUTION || !is_zero(w, g->other, factor_of(g->p, g->left, inner, c));
}

/* Which elements of the dense product are not zero whatever the parameters are: `words` of bits for
 * each of its columns. NULL without memory. */
static uint64_t *find_pattern(scl_jacobian *w, int x, const grid *g, size_t words) {
  const size_t columns = g->outer * g->used, k = g->p->k;
  uint64_t *bits = scl_sparse_room(w, columns * words, sizeof *bits);
  uint64_t *factor = scl_sparse_room(w, k * words, sizeof *factor);
  if (bits != NULL) memset(bits, 0, columns * words * sizeof *bits);
  if (factor != NULL) memset(factor, 0, k * words * sizeof *factor);
  for (size_t i = 0; factor != NULL && i < k; i++) {
    for (size_t c = 0; c < g->each; c++) {
      if (is_in(w, g, i, c)) factor[i * words + c / 64] |= UINT64_C(1) << c % 64;
    }
  }
  for (int t = w->first[x]; bits != NULL && factor != NULL && t != NONE; t = w->term[t].next) {
    const scl_entries *e = scl_entries_of(w, t);
    for (size_t i = 0; i < e->length; i++) {
      size_t inner;
      uint64_t *to = bits + place_of(w, g, e, i, &inner) * words;
      for (size_t word = 0; word < words; word++) to[word] |= factor[inner * words + word];
    }
  }
  free(factor);
  return bits;
}

/* Adds the elements that are in the pattern as a term. */
static void add_grid(scl_jacobian *w, int value, const grid *g, const uint64_t *bits, size_t words,
                     int numbers) {
  const size_t columns = g->outer * g->used;
  size_t total = 0;
  scl_listing l;
  for (size_t i = 0; i < columns * words; i++) {
    for (uint64_t word = bits[i]; word != 0; word &= word - 1) total++;
  }
  if (!scl_listing_begin(w, value, total, &l)) return;
  for (size_t j = 0; j < columns; j++) {
    for (size_t c = 0; c < g->each; c++) {
      if ((bits[j * words + c / 64] >> c % 64 & 1) == 0) continue;
      scl_listing_put(&l, row_of(g->p, g->left, j % g->outer, c), g->column[j / g->outer],
                      c + j * g->each);
    }
  }
  scl_listing_finish(w, value, &l, numbers);
}

/* A^-1 times the matrix `numbers`, for a value that solves equations with A. */
static int solve(scl_jacobian *w, int value, size_t columns, int numbers) {
  const scl_value v = w->t->value[value];
  const int a = scl_tape_operand(w->t, value, 0);
  size_t at[4] = {v.at[0], v.at[1], v.at[2], v.at[3]};
  at[v.kind == SCL_VALUE_SPARSE_SOLVE ? 3 : 1] = columns;
  return scl_tape_call(w->t, (scl_value_kind)v.kind, a, numbers, at);
}

/* The product with the matrix `numbers`. */
static int multiply(scl_jacobian *w, int value, const grid *g, int numbers) {
  const product *p = g->p;
  const size_t columns = g->outer * g->used;
  if (g->other == SOLUTION) return solve(w, value, columns, numbers);
  if (g->other < 0) return scl_tape_cumsum(w->t, numbers, p->k, columns, g->other == SUMS_BACK);
  const bool flipped = g->left ? !p->tb : p->ta;
  return scl_tape_matmul(w->t, g->other, numbers, g->each, p->k, columns, flipped, false);
}

static void add_dense(scl_jacobian *w, int value, int x, const grid *g) {
  const size_t words = (g->each + 63) / 64;
  if (!scl_sparse_allows(w, value, g->p->k * g->outer * g->used)) return;
  uint64_t *bits = find_pattern(w, x, g, words);
  const int from = fill_grid(w, x, g);
  if (w->t->status == SCL_OK && bits != NULL) {
    add_grid(w, value, g, bits, words, multiply(w, value, g, from));
  }
  free(bits);
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* `listed`: how many numbers are listed one by one; `each`: products for a number of the matrix. */
static bool is_dense(const grid *g, double listed, double each) {
  const double all = (double)g->outer * (double)g->used * (double)g->p->k * each;
  return listed >= FEW_LISTED && all < COST_LISTED * listed;
}

static void add_product(scl_jacobian *w, int value, const product *p, bool left, int x, int other) {
  grid g;
  if (w->refused[x]) w->refused[value] = true;
  if (w->first[x] == NONE || !scl_sparse_allows(w, value, 0)) return;
  measure(w, p, left, x, other, &g);
  const double listed = (double)g.total * (double)g.each * share_of(w, other);
  const bool dense = w->t->status == SCL_OK && is_dense(&g, listed, (double)g.each);
  if (dense) add_dense(w, value, x, &g);
  end_grid(w, &g);
  for (int k = w->first[x]; !dense && k != NONE && !w->refused[value] && w->t->status == SCL_OK;
       k = w->term[k].next) {
    list_term(w, value, p, left, k, other);
  }
}

void scl_sparse_matmul(scl_jacobian *w, int value) {
  const size_t *at = w->t->value[value].at;
  const product p = {at[0], at[1], at[2], at[3] != 0, at[4] != 0};
  const int a = scl_tape_operand(w->t, value, 0), b = scl_tape_operand(w->t, value, 1);
  add_product(w, value, &p, true, a, b);
  add_product(w, value, &p, false, b, a);
  scl_sparse_merge(w, value, false);
}

/* A^-1 B, for a matrix that does not depend on chosen parameters: of many columns, as the product
 * with the inverse. */
void scl_sparse_solve_rule(scl_jacobian *w, int value) {
  const scl_value v = w->t->value[value];
  const bool sparse = v.kind == SCL_VALUE_SPARSE_SOLVE;
  const size_t n = v.at[sparse ? 1 : 0], columns = v.at[sparse ? 3 : 1];
  const int a = scl_tape_operand(w->t, value, 0), b = scl_tape_operand(w->t, value, 1);
  const product p = {n, n, columns, false, false};
  grid g;
  if (w->first[a] != NONE || w->refused[a] || w->refused[b]) w->refused[value] = true;
  if (w->first[b] == NONE || !scl_sparse_allows(w, value, 0)) return;
  measure(w, &p, false, b, SOLUTION, &g);
  const bool whole = g.outer * g.used <= 2 * n;
  if (whole && w->t->status == SCL_OK) add_dense(w, value, b, &g);
  end_grid(w, &g);
  if (whole || !scl_sparse_allows(w, value, n * n)) return;
  double *identity = scl_sparse_room(w, n * n, sizeof *identity);
  for (size_t k = 0; identity != NULL && k < n * n; k++) identity[k] = k % (n + 1) == 0;
  const int unit = scl_tape_data_value(w->t, scl_tape_own_data(w->t, identity, n * n));
  const int inverse = solve(w, value, n, unit);
  if (w->t->status == SCL_OK) add_product(w, value, &p, false, b, inverse);
}

/* The rows that element number `row` is summed in: from *from on, below the result. */
static size_t sums_with(size_t row, size_t m, bool reverse, size_t *from) {
  const size_t top = row - row % m;
  *from = reverse ? top : row;
  return reverse ? row + 1 : top + m;
}

static void list_sums(scl_jacobian *w, int value, int term, size_t total) {
  const scl_value v = w->t->value[value];
  const scl_entries *e = scl_entries_of(w, term);
  scl_listing l;
  if (!scl_listing_begin(w, value, total, &l)) return;
  for (size_t i = 0; i < e->length; i++) {
    size_t r;
    const size_t end = sums_with(scl_entries_row(e, i), v.at[0], v.at[2] != 0, &r);
    for (; r < end; r++) scl_listing_put(&l, r, e->column[i], i);
  }
  scl_listing_finish(w, value, &l, w->term[term].value);
}

static size_t count_sums(const scl_jacobian *w, int value, int term) {
  const scl_value v = w->t->value[value];
  const scl_entries *e = scl_entries_of(w, term);
  size_t total = 0;
  for (size_t i = 0; i < e->length; i++) {
    size_t from;
    const size_t end = sums_with(scl_entries_row(e, i), v.at[0], v.at[2] != 0, &from);
    total += end - from;
  }
  return total;
}

/* A sum over the rows before in the same column, or after. */
void scl_sparse_cumsum(scl_jacobian *w, int value) {
  const scl_value v = w->t->value[value];
  const product p = {v.at[0], v.at[0], v.at[1], false, false};
  const int x = scl_tape_operand(w->t, value, 0);
  double listed = 0.0;
  grid g;
  if (w->refused[x]) w->refused[value] = true;
  if (w->first[x] == NONE || !scl_sparse_allows(w, value, 0)) return;
  measure(w, &p, false, x, v.at[2] != 0 ? SUMS_BACK : SUMS, &g);
  for (int k = w->first[x]; k != NONE; k = w->term[k].next) listed += count_sums(w, value, k);
  const bool dense = w->t->status == SCL_OK && is_dense(&g, listed, 1.0);
  if (dense) add_dense(w, value, x, &g);
  end_grid(w, &g);
  for (int k = w->first[x]; !dense && k != NONE && !w->refused[value] && w->t->status == SCL_OK;
       k = w->term[k].next) {
    list_sums(w, value, k, count_sums(w, value, k));
  }
  if (!dense) scl_sparse_merge(w, value, false);
}
