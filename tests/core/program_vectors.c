/* Programs of several parameter vectors against the same program of one. */
#include "program_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

scl_status program_map(scl_program *p, const program_nodes *l, int output, size_t vectors) {
  scl_tape t;
  scl_tape_begin(&t);
  const int result = program_record(l, &t, output);
  return scl_program_map(p, &t, result, vectors);
}

/* Sums of another length have another order: `scale` is the largest number of the vector. */
static bool same(double got, double want, double scale) {
  if (got == want || (isnan(got) && isnan(want))) return true;
  return fabs(got - want) <= 1e-10 * fmax(1.0, scale);
}

bool program_same_columns(const double *got, const double *want, size_t rows, size_t vectors,
                          const char *what) {
  for (size_t k = 0; k < vectors; k++) {
    double scale = 0.0;
    for (size_t i = 0; i < rows; i++) {
      if (isfinite(want[k * rows + i])) scale = fmax(scale, fabs(want[k * rows + i]));
    }
    for (size_t i = 0; i < rows; i++) {
      const double g = got[k * rows + i], w = want[k * rows + i];
      if (same(g, w, scale)) continue;
      test_check(false, what, __FILE__, __LINE__);
      printf("       vector %zu of %zu, number %zu: %.17g, not %.17g\n", k, vectors, i, g, w);
      return false;
    }
  }
  return true;
}

static double *points_around(const program_nodes *l, size_t vectors) {
  const size_t n = l->parameters;
  double *x = test_alloc((n * vectors + 1) * sizeof *x);
  for (size_t i = 0; i < n * vectors; i++) {
    x[i] = l->x[i % n] + (i < n ? 0.0 : 1e-3 * test_random());
  }
  return x;
}

void program_check_vectors(scl_context *ctx, program_nodes *l, int output, size_t vectors,
                           const char *what) {
  const scl_memory before = scl_context_memory(ctx);
  const size_t rows = l->parameters + 1;
  double *x = points_around(l, vectors);
  double *got = test_alloc(rows * vectors * sizeof *got);
  double *want = test_alloc(rows * vectors * sizeof *want);
  scl_program *p = program_compile(ctx, l, output, what);
  if (p != NULL) {
    CHECK_OK(scl_program_run_vectors(p, x, vectors, true, want)); /* one after another */
    CHECK_OK(program_map(p, l, output, vectors));
    CHECK(scl_program_is_mapped(p, vectors));
    CHECK_OK(scl_program_run_vectors(p, x, vectors, true, got));
    test_check(program_same_columns(got, want, rows, vectors, what), what, __FILE__, __LINE__);
    for (size_t k = 0; k < vectors; k++) want[k] = want[k * rows];
    CHECK_OK(scl_program_run_vectors(p, x, vectors, false, got));
    test_check(program_same_columns(got, want, 1, vectors, what), what, __FILE__, __LINE__);
  }
  scl_program_release(p);
  test_check(scl_context_memory(ctx).live == before.live, what, __FILE__, __LINE__);
  FREE(x, got, want);
}
