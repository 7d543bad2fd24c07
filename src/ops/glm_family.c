#include "ops/glm_family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const family_name[] = {
#define ROW(NAME, name, support, words, aux) #name,
    SCL_GLM_FAMILIES(ROW)
#undef ROW
};

static const char *const support_words[] = {
#define ROW(NAME, name, support, words, aux) words,
    SCL_GLM_FAMILIES(ROW)
#undef ROW
};

static const char *const aux_name[] = {NULL, "sigma", "phi", "cuts"};

const char *scl_glm_family_name(scl_glm_family family) {
  return family_name[family];
}

const char *scl_glm_aux_name(scl_glm_family family) {
  return aux_name[GLM_FAMILY_AUX(family)];
}

scl_status scl_glm_family_find(const char *name, scl_glm_family *out) {
  char known[256] = "";
  size_t used = 0;
  for (int f = 0; f < SCL_GLM_FAMILY_COUNT; f++) {
    if (strcmp(name, family_name[f]) == 0) {
      *out = (scl_glm_family)f;
      return SCL_OK;
    }
    if (used < sizeof known) {
      used += (size_t)snprintf(known + used, sizeof known - used, "%s\"%s\"", f ? ", " : "",
                               family_name[f]);
    }
  }
  return scl_fail_argument("family", "'family' must be one of %s, not \"%.40s\"", known, name);
}

/* ---- data -------------------------------------------------------------------------------------
 */

static bool supports(scl_glm_family family, double y, double datum) {
  (void)datum;
  switch (family) {
#define ROW(NAME, name, support, words, aux)                                                       \
  case SCL_GLM_##NAME:                                                                             \
    return (support);
    SCL_GLM_FAMILIES(ROW)
#undef ROW
  default:
    return false;
  }
}

static scl_status fail_data(const char *argument, const char *words, scl_glm_family family,
                            size_t place, double value) {
  char text[32];
  snprintf(text, sizeof text, "%g", value);
  scl_fail_argument(argument, "'%s' must be %s for family %s, but %s[%zu] is %s", argument, words,
                    family_name[family], argument, place + 1, isnan(value) ? "NA or NaN" : text);
  scl_fault_edit()->index = (int64_t)place + 1;
  return SCL_E_ARGUMENT;
}

/* A proportion of several trials need not be an integer count. */
static bool is_share(scl_glm_family family, double y, double datum) {
  return GLM_FAMILY_DATUM(family) && y >= 0.0 && y <= datum;
}

/* Without branches: a million numbers take a millisecond. */
static bool is_binary(const double *y, size_t n) {
  int other = 0;
  for (size_t i = 0; i < n; i++) other |= (y[i] != 0.0) & (y[i] != 1.0);
  return other == 0;
}

scl_status scl_glm_check_data(scl_glm_family family, const scl_glm_data *data, size_t n) {
  const double *datum = data->datum, *weight = data->weight;
  size_t n_y = data->n_y, rows = datum != NULL && data->n_datum > n_y ? data->n_datum : n_y;
  for (size_t i = 0; datum != NULL && i < data->n_datum; i++) {
    if (!(datum[i] >= 0.0 && GLM_WHOLE(datum[i])))
      return fail_data("trials", "non-negative integers", family, i, datum[i]);
  }
  if (GLM_IS(BINARY, family) && is_binary(data->y, n_y)) rows = 0;
  for (size_t i = 0; i < rows; i++) {
    double one = data->y[n_y == 1 ? 0 : i];
    double trials = datum != NULL ? datum[data->n_datum == 1 ? 0 : i] : 0.0;
    bool fits = supports(family, one, trials) || (weight != NULL && is_share(family, one, trials));
    if (!fits) return fail_data("y", support_words[family], family, n_y == 1 ? 0 : i, one);
  }
  for (size_t i = 0; weight != NULL && i < n; i++) {
    if (!(isfinite(weight[i]) && weight[i] > 0.0))
      return fail_data("weights", "positive and finite", family, i, weight[i]);
  }
  return SCL_OK;
}

/* A value of y and its weight. */
typedef struct {
  double value, weight;
} weighted_value;

static int compare_values(const void *a, const void *b) {
  double x = ((const weighted_value *)a)->value, y = ((const weighted_value *)b)->value;
  return (x > y) - (x < y);
}

/* Adds the distinct values of sorted numbers, and their weights. */
static void add_sorted(const weighted_value *sorted, size_t n, scl_glm_summary *s) {
  size_t first = s->distinct;
  for (size_t i = 0; i < n; i++) {
    if (s->distinct > first && s->value[s->distinct - 1] == sorted[i].value) {
      s->count[s->distinct - 1] += sorted[i].weight;
    } else {
      s->value[s->distinct] = sorted[i].value;
      s->count[s->distinct++] = sorted[i].weight;
    }
  }
}

enum { SMALL_VALUES = 1 << 16 }; /* a table of 512 KiB, which stays in the cache */

/* Small whole numbers are counted in a table, the others sorted. `weight` may be NULL. */
static scl_status count_values(const double *y, const double *weight, size_t n,
                               scl_glm_summary *s) {
  size_t large = 0, distinct = 0;
  double *table = calloc(SMALL_VALUES, sizeof *table);
  if (table == NULL) return scl_fail_memory(SMALL_VALUES * sizeof *table, 0, "'y'");
  for (size_t i = 0; i < n; i++) {
    if (y[i] < SMALL_VALUES) {
      table[(size_t)y[i]] += weight != NULL ? weight[i] : 1.0;
    } else {
      large++;
    }
  }
  for (size_t v = 0; v < SMALL_VALUES; v++) distinct += table[v] > 0.0;
  size_t room = distinct + large > 0 ? distinct + large : 1;
  weighted_value *rest = malloc((large > 0 ? large : 1) * sizeof *rest);
  s->value = malloc(room * sizeof *s->value);
  s->count = malloc(room * sizeof *s->count);
  if (s->value == NULL || s->count == NULL || rest == NULL) {
    free(rest);
    free(table);
    return scl_fail_memory(2 * room * sizeof *s->value, 0, "'y'");
  }
  for (size_t v = 0; v < SMALL_VALUES; v++) {
    if (table[v] == 0.0) continue;
    s->value[s->distinct] = (double)v;
    s->count[s->distinct++] = table[v];
  }
  free(table);
  for (size_t i = 0, k = 0; i < n && large > 0; i++) {
    if (y[i] >= SMALL_VALUES) rest[k++] = (weighted_value){y[i], weight != NULL ? weight[i] : 1.0};
  }
  qsort(rest, large, sizeof *rest, compare_values);
  add_sorted(rest, large, s);
  free(rest);
  return SCL_OK;
}

static double sum_of(const double *v, size_t n) {
  double sum = 0.0, error = 0.0;
  for (size_t i = 0; i < n; i++) {
    double next = sum + v[i], back = next - sum;
    error += (sum - (next - back)) + (v[i] - back);
    sum = next;
  }
  return sum + error;
}

enum { SMALL_COUNTS = 256 };

/* The constant of a response without a datum, which for a count is a log factorial: those of small
 * ones are computed once. NaN in `known`: not yet. */
static double constant_of(scl_glm_family family, double y, double known[SMALL_COUNTS]) {
  const bool small = y >= 0.0 && y < SMALL_COUNTS && y == floor(y);
  if (!small) return glm_family_constant((int)family, y, 0.0);
  double *term = &known[(int)y];
  if (isnan(*term)) *term = glm_family_constant((int)family, y, 0.0);
  return *term;
}

scl_status scl_glm_summarise(scl_glm_family family, const scl_glm_data *data, size_t n,
                             scl_glm_summary *out) {
  const double *y = data->y, *datum = data->datum, *weight = data->weight;
  size_t n_y = data->n_y;
  *out = (scl_glm_summary){0};
  if (n == 0 || GLM_IS(BINARY, family)) return SCL_OK; /* no constant, no classes */
  bool same = n_y == 1 && (datum == NULL || data->n_datum == 1);
  double total = weight != NULL ? sum_of(weight, n) : (double)n;
  size_t terms = same ? 1 : n;
  double sum = 0.0, error = 0.0; /* of the sum's additions */
  double known[SMALL_COUNTS];
  for (int i = 0; i < SMALL_COUNTS; i++) known[i] = NAN;
  for (size_t i = 0; i < terms; i++) {
    double one = y[n_y == 1 ? 0 : i];
    double term = datum == NULL
                      ? constant_of(family, one, known)
                      : glm_family_constant((int)family, one, datum[data->n_datum == 1 ? 0 : i]);
    if (weight != NULL && !same) term *= weight[i];
    double next = sum + term, back = next - sum;
    error += (sum - (next - back)) + (term - back);
    sum = next;
    if (one > out->most) out->most = one;
  }
  out->constant = (sum + error) * (same ? total : 1.0);
  scl_glm_aux aux = GLM_FAMILY_AUX(family);
  if (aux != SCL_GLM_PHI && aux != SCL_GLM_CUTS) return SCL_OK;
  scl_status status = count_values(y, n_y == 1 ? NULL : weight, n_y, out);
  if (n_y == 1 && status == SCL_OK) out->count[0] = total;
  if (status != SCL_OK) scl_glm_summary_free(out);
  return status;
}

void scl_glm_summary_free(scl_glm_summary *summary) {
  free(summary->value);
  free(summary->count);
  *summary = (scl_glm_summary){0};
}

/* ---- auxiliary parameters
 * ---------------------------------------------------------------------------
 */

static scl_status fail_aux(scl_status status, const char *name, size_t place, const char *what) {
  char message[96];
  snprintf(message, sizeof message, "'%s' %s, but its element %zu is not", name, what, place + 1);
  if (status == SCL_E_ARGUMENT) {
    scl_fail_argument(name, "%s", message);
  } else {
    scl_fail(status, "%s", message);
    snprintf(scl_fault_edit()->argument, sizeof scl_fault_edit()->argument, "%s", name);
  }
  scl_fault_edit()->index = (int64_t)place + 1;
  return status;
}

scl_status scl_glm_check_aux(scl_glm_family family, const double *aux, size_t numbers) {
  scl_glm_aux kind = GLM_FAMILY_AUX(family);
  for (size_t i = 0; i < numbers; i++) {
    if (!isfinite(aux[i])) return fail_aux(SCL_E_NONFINITE, aux_name[kind], i, "must be finite");
    if (kind == SCL_GLM_CUTS && i > 0 && !(aux[i] > aux[i - 1]))
      return fail_aux(SCL_E_ARGUMENT, "cuts", i, "must be increasing");
    if (kind != SCL_GLM_CUTS && !(aux[i] > 0.0))
      return fail_aux(SCL_E_ARGUMENT, aux_name[kind], i, "must be positive");
  }
  return SCL_OK;
}

void scl_glm_add_values(scl_glm_family family, const scl_glm_summary *summary, const double *aux,
                        size_t numbers, double *value, double *d_aux) {
  bool cuts = GLM_FAMILY_AUX(family) == SCL_GLM_CUTS;
  for (size_t i = 0; i < summary->distinct; i++) {
    double y = summary->value[i], count = summary->count[i];
    glm_aux seen = cuts ? glm_aux_cuts(aux, (int)numbers, y) : glm_aux_number(aux[0]);
    glm_term term = glm_family_value((int)family, y, seen);
    *value += count * term.value;
    if (d_aux == NULL) continue;
    if (!cuts) {
      d_aux[0] += count * term.d_aux;
      continue;
    }
    size_t above = (size_t)y - 1;
    if (above < numbers) d_aux[above] += count * term.d_aux;
    if (above > 0) d_aux[above - 1] += count * term.d_low;
  }
}

void scl_glm_add_row_values(scl_glm_family family, const scl_glm_data *rows, const double *aux,
                            size_t n, double *value, double *d_aux) {
  double sum = 0.0, error = 0.0;
  for (size_t i = 0; i < n; i++) {
    double times = rows->weight != NULL ? rows->weight[i] : 1.0;
    glm_term term = glm_family_value((int)family, rows->y[i], glm_aux_number(aux[i]));
    double next = sum + times * term.value, back = next - sum;
    error += (sum - (next - back)) + (times * term.value - back);
    sum = next;
    if (d_aux != NULL) d_aux[i] += times * term.d_aux;
  }
  *value += sum + error;
}
