#include "ops/compressed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/engine.h"
#include "base/sizes.h"
#include "engine/pass/compressed.h"
#include "kernels/include/port.h"
#include "kernels/include/compressed.h"

enum { START, COLUMN, VALUE, TILES, CUTS, ARRAYS };

/* Compressed rows, in host memory and then where they are used. */
typedef struct {
  int32_t *start, *column, *tiles, *cuts;
  double *value;      /* or NULL: */
  const double *lent; /* memory of the caller */
  scl_mat *mat[ARRAYS];
  struct scl_compressed_rows rows;
} side;

struct scl_compressed {
  scl_context *ctx;
  side side[2]; /* the matrix; its transpose */
};

/* ---- host memory ----------------------------------------------------------------------------- */

/* Room for n whole numbers, two for each double. */
static int32_t *numbers(size_t n) {
  return calloc(n / 2 + 1, sizeof(double));
}

static scl_status no_memory(size_t count) {
  return scl_fail_memory(count * (sizeof(double) + sizeof(int32_t)), 0, "a sparse matrix");
}

static scl_status check(size_t m, size_t n, const int32_t *start, const int32_t *row) {
  bool good = start[0] == 0;
  for (size_t j = 0; j < n && good; j++) {
    good = start[j] <= start[j + 1];
    for (int32_t t = start[j]; t < start[j + 1] && good; t++) {
      good = row[t] >= 0 && (size_t)row[t] < m && (t == start[j] || row[t - 1] < row[t]);
    }
  }
  if (!good)
    return scl_fail_argument("x", "'x' is not a valid sparse matrix: its rows must be "
                                  "increasing in each column");
  if (start[n] > INT_MAX - COMPRESSED_TILE) {
    return scl_fail_argument("x", "'x' has too many stored elements");
  }
  return SCL_OK;
}

/* The rows of `from` as columns of `to`. */
static scl_status transpose(const side *from, side *to) {
  const size_t m = from->rows.m, n = from->rows.n, count = from->rows.count;
  to->rows = (struct scl_compressed_rows){.m = n, .n = m, .count = count};
  to->start = numbers(n + 1);
  to->column = numbers(count);
  to->value = malloc((count + 1) * sizeof *to->value);
  if (to->start == NULL || to->column == NULL || to->value == NULL) return no_memory(count);
  for (size_t t = 0; t < count; t++) to->start[from->column[t] + 1]++;
  for (size_t i = 0; i < n; i++) to->start[i + 1] += to->start[i];
  for (size_t j = 0; j < m; j++) {
    for (int32_t t = from->start[j]; t < from->start[j + 1]; t++) {
      const int32_t at = to->start[from->column[t]]++;
      to->column[at] = (int32_t)j;
      to->value[at] = from->lent[t];
    }
  }
  memmove(to->start + 1, to->start, n * sizeof *to->start);
  to->start[0] = 0;
  return SCL_OK;
}

typedef struct {
  int32_t *tiles, *cuts; /* NULL: only counted */
  size_t tile, cut, pieces;
} cutting;

static void add_tile(cutting *c, size_t row, size_t rows, int32_t first, int32_t piece) {
  if (c->tiles != NULL) {
    const int32_t record[COMPRESSED_RECORD] = {(int32_t)row, (int32_t)rows, first, piece};
    memcpy(c->tiles + c->tile * COMPRESSED_RECORD, record, sizeof record);
  }
  c->tile++;
}

static void add_cut(cutting *c, size_t row) {
  if (c->cuts != NULL) {
    c->cuts[2 * c->cut] = (int32_t)row;
    c->cuts[2 * c->cut + 1] = (int32_t)c->pieces;
  }
  c->cut++;
}

/* Tiles of whole rows, and those of rows that are longer than a tile. */
static void cut(const side *s, cutting *c) {
  const size_t m = s->rows.m;
  for (size_t i = 0; i < m;) {
    const int32_t first = s->start[i];
    size_t end = i;
    while (end < m && end - i < COMPRESSED_ITEMS && s->start[end + 1] - first <= COMPRESSED_TILE)
      end++;
    if (end > i) {
      add_tile(c, i, end - i, first, -1);
      i = end;
      continue;
    }
    add_cut(c, i);
    for (int32_t t = first; t < s->start[i + 1]; t += COMPRESSED_TILE)
      add_tile(c, i, 1, t, (int32_t)c->pieces++);
    i++;
  }
  const size_t tiles = c->tile, cuts = c->cut;
  add_tile(c, m, 0, (int32_t)s->rows.count, -1);
  add_cut(c, m);
  c->tile = tiles;
  c->cut = cuts;
}

static scl_status cut_rows(side *s) {
  cutting c = {0};
  cut(s, &c);
  s->rows.tile_count = c.tile;
  s->rows.cut_count = c.cut;
  s->rows.pieces = c.pieces;
  c = (cutting){.tiles = numbers((c.tile + 1) * COMPRESSED_RECORD), .cuts = numbers(2 * c.cut + 2)};
  s->tiles = c.tiles;
  s->cuts = c.cuts;
  if (c.tiles == NULL || c.cuts == NULL) return no_memory(s->rows.count);
  cut(s, &c);
  return SCL_OK;
}

/* ---- on the engine --------------------------------------------------------------------------- */

/* n numbers of `size` bytes, wrapped or copied. */
static scl_status place(scl_context *ctx, const void *data, size_t n, size_t size, scl_mat **mat,
                        scl_block *block) {
  const size_t doubles = scl_ceil_div(n * size, sizeof(double));
  if (doubles == 0) return SCL_OK;
  SCL_TRY(ctx->engine->buffer_wrap != NULL
              ? scl_mat_wrap(ctx, (double *)data, doubles, 1, SCL_GENERAL, mat)
              : scl_mat_from_host(ctx, data, doubles, 1, SCL_GENERAL, mat));
  *block = scl_mat_block(*mat);
  return SCL_OK;
}

static scl_status place_side(scl_context *ctx, side *s) {
  struct scl_compressed_rows *r = &s->rows;
  const double *value = s->value != NULL ? s->value : s->lent;
  const size_t whole = sizeof(int32_t);
  SCL_TRY(cut_rows(s));
  SCL_TRY(place(ctx, s->start, r->m + 1, whole, &s->mat[START], &r->start));
  SCL_TRY(place(ctx, s->column, r->count, whole, &s->mat[COLUMN], &r->column));
  SCL_TRY(place(ctx, value, r->count, sizeof *value, &s->mat[VALUE], &r->value));
  SCL_TRY(place(ctx, s->tiles, (r->tile_count + 1) * COMPRESSED_RECORD, whole, &s->mat[TILES],
                &r->tiles));
  return place(ctx, s->cuts, 2 * r->cut_count + 2, whole, &s->mat[CUTS], &r->cuts);
}

/* Frees the arrays that the engine does not read. The starts stay: engines choose algorithms by
 * them.
 */
static void drop_copies(side *s) {
  free(s->column);
  free(s->tiles);
  free(s->cuts);
  free(s->value);
  s->column = s->tiles = s->cuts = NULL;
  s->value = NULL;
  s->lent = NULL;
}

scl_status scl_compressed_create(scl_context *ctx, size_t m, size_t n, const int32_t *start,
                                 const int32_t *row, const double *value, scl_compressed **out) {
  SCL_TRY(check(m, n, start, row));
  scl_compressed *a = calloc(1, sizeof *a);
  if (a == NULL) return no_memory(0);
  const size_t count = (size_t)start[n];
  scl_status status = SCL_OK;
  side *columns = &a->side[1];
  a->ctx = scl_context_retain(ctx);
  columns->rows = (struct scl_compressed_rows){.m = n, .n = m, .count = count};
  columns->lent = value;
  columns->start = numbers(n + 1);
  columns->column = numbers(count);
  if (columns->start == NULL || columns->column == NULL) {
    status = no_memory(count);
    goto done;
  }
  memcpy(columns->start, start, (n + 1) * sizeof *start);
  if (count > 0) memcpy(columns->column, row, count * sizeof *row);
  SCL_GO(transpose(columns, &a->side[0]));
  for (int k = 0; k < 2; k++) {
    SCL_GO(place_side(ctx, &a->side[k]));
    if (ctx->engine->buffer_wrap == NULL) drop_copies(&a->side[k]);
  }
done:
  if (status != SCL_OK) {
    scl_compressed_release(a);
    return status;
  }
  *out = a;
  return SCL_OK;
}

void scl_compressed_release(scl_compressed *a) {
  if (a == NULL) return;
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < ARRAYS; i++) scl_mat_release(a->side[k].mat[i]);
    drop_copies(&a->side[k]);
    free(a->side[k].start);
  }
  scl_context_release(a->ctx);
  free(a);
}

scl_context *scl_compressed_context(const scl_compressed *a) {
  return a->ctx;
}

uint64_t scl_compressed_bytes(const scl_compressed *a) {
  uint64_t bytes = 0;
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < ARRAYS; i++) {
      if (a->side[k].mat[i] != NULL) bytes += scl_mat_bytes(a->side[k].mat[i]);
    }
  }
  return bytes;
}

/* ---- products -------------------------------------------------------------------------------- */

static scl_status check_operand(const scl_compressed *a, const scl_mat *b, const char *name,
                                size_t rows) {
  if (scl_mat_context(b) != a->ctx) {
    return scl_fail_argument(name, "'%s' and the sparse matrix are on different devices", name);
  }
  if (scl_mat_nrow(b) == rows) return SCL_OK;
  return scl_fail_argument(name, "non-conformable arguments: '%s' has %zu rows, not %zu", name,
                           scl_mat_nrow(b), rows);
}

scl_status scl_compressed_multiply(const scl_compressed *a, bool transposed, scl_mat *b,
                                   scl_mat **out) {
  const struct scl_compressed_rows *rows = &a->side[transposed].rows;
  scl_mat *c = NULL;
  SCL_TRY(check_operand(a, b, "y", rows->n));
  SCL_TRY(scl_mat_create(a->ctx, rows->m, scl_mat_ncol(b), SCL_GENERAL, &c));
  scl_status status =
      a->ctx->engine->compressed_multiply(a->ctx, rows, scl_mat_block(b), scl_mat_block(c));
  if (status != SCL_OK) {
    scl_mat_release(c);
    return status;
  }
  *out = c;
  return SCL_OK;
}

scl_status scl_compressed_gram(const scl_compressed *a, bool transposed, scl_mat *w,
                               scl_mat **out) {
  const side *along = &a->side[transposed], *across = &a->side[!transposed];
  const struct scl_compressed_pair pair = {along->rows, across->rows, across->start};
  scl_mat *c = NULL;
  if (w != NULL) SCL_TRY(check_operand(a, w, "weights", along->rows.m));
  SCL_TRY(scl_mat_create(a->ctx, along->rows.n, along->rows.n, SCL_SYMMETRIC, &c));
  scl_status status = a->ctx->engine->compressed_gram(
      a->ctx, &pair, w != NULL ? scl_mat_block(w) : (scl_block){0}, scl_mat_block(c));
  if (status != SCL_OK) {
    scl_mat_release(c);
    return status;
  }
  *out = c;
  return SCL_OK;
}
