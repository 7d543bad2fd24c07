#include "ops/glm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/glm_family.h"
#include "ops/glm_private.h"
#include "ops/operation.h"

/* ---- the data -------------------------------------------------------------------------------- */

static void fill_column(double *to, const double *from, size_t n_from, size_t n) {
  if (n_from == n && n > 0) {
    memcpy(to, from, n * sizeof *to);
    return;
  }
  for (size_t i = 0; i < n; i++) to[i] = from[0];
}

static scl_status upload_data(scl_context *ctx, const scl_glm_data *data, size_t n, scl_mat **out) {
  if (data->n_y == n && data->datum == NULL && data->weight == NULL)
    return scl_mat_from_host(ctx, data->y, n, 1, SCL_GENERAL, out);
  size_t columns = 1 + (data->datum != NULL) + (data->weight != NULL);
  size_t bytes = (n > 0 ? n : 1) * columns * sizeof(double);
  double *rows = malloc(bytes);
  if (rows == NULL) return scl_fail_memory(bytes, 0, "'y'");
  fill_column(rows, data->y, data->n_y, n);
  if (data->datum != NULL) fill_column(rows + n, data->datum, data->n_datum, n);
  if (data->weight != NULL) fill_column(rows + (columns - 1) * n, data->weight, n, n);
  scl_status status = scl_mat_from_host(ctx, rows, n, columns, SCL_GENERAL, out);
  free(rows);
  return status;
}

static scl_status check_length(const char *argument, size_t length, size_t n) {
  if (length == n || length == 1) return SCL_OK;
  return scl_fail_argument(argument, "'%s' has length %zu, but 'x' has %zu rows", argument, length,
                           n);
}

scl_status scl_glm_create(scl_glm_family family, const scl_glm_data *data, scl_mat *x,
                          scl_glm **out) {
  size_t n = scl_mat_nrow(x);
  SCL_TRY(check_length("y", data->n_y, n));
  if (GLM_FAMILY_DATUM(family)) {
    if (data->datum == NULL)
      return scl_fail_argument("trials", "family %s needs 'trials'", scl_glm_family_name(family));
    SCL_TRY(check_length("trials", data->n_datum, n));
  } else if (data->datum != NULL) {
    return scl_fail_argument("trials", "family %s does not use 'trials'",
                             scl_glm_family_name(family));
  }
  SCL_TRY(scl_glm_check_data(family, data, n));
  scl_glm *glm = calloc(1, sizeof *glm);
  if (glm == NULL) return scl_fail_memory(sizeof *glm, 0, "a likelihood");
  glm->family = family;
  glm->weighted = data->weight != NULL;
  scl_status status = scl_glm_summarise(family, data, n, &glm->summary);
  if (status == SCL_OK) status = upload_data(scl_mat_context(x), data, n, &glm->y);
  if (status != SCL_OK) {
    scl_glm_summary_free(&glm->summary);
    free(glm);
    return status;
  }
  glm->x = scl_mat_retain(x);
  *out = glm;
  return SCL_OK;
}

void scl_glm_release(scl_glm *glm) {
  if (glm == NULL) return;
  for (int k = 0; k < SCL_GLM_SLOTS; k++) {
    scl_buffer_release(glm->slot[k].state.work.buffer);
    free(glm->slot[k].memory);
  }
  scl_mat_release(glm->y);
  scl_mat_release(glm->x);
  scl_glm_summary_free(&glm->summary);
  free(glm->rows);
  free(glm);
}

scl_glm_family scl_glm_family_of(const scl_glm *glm) {
  return glm->family;
}
scl_context *scl_glm_context(const scl_glm *glm) {
  return scl_mat_context(glm->x);
}
size_t scl_glm_nrow(const scl_glm *glm) {
  return scl_mat_nrow(glm->x);
}
size_t scl_glm_ncol(const scl_glm *glm) {
  return scl_mat_ncol(glm->x);
}

uint64_t scl_glm_bytes(const scl_glm *glm) {
  uint64_t bytes = scl_mat_bytes(glm->x) + scl_mat_bytes(glm->y);
  for (int k = 0; k < SCL_GLM_SLOTS; k++) {
    const scl_buffer *work = glm->slot[k].state.work.buffer;
    if (work != NULL) bytes += work->bytes;
  }
  return bytes;
}

/* ---- checks of an evaluation ------------------------------------------------------------------
 */

static scl_status fail_nonfinite(const char *argument, int64_t index, const char *message) {
  scl_fail_index(SCL_E_NONFINITE, index, "%s", message);
  snprintf(scl_fault_edit()->argument, sizeof scl_fault_edit()->argument, "%s", argument);
  return SCL_E_NONFINITE;
}

size_t scl_glm_count_finite(const double *v, size_t n) {
  size_t i = 0;
  while (i < n && isfinite(v[i])) i++;
  return i;
}

static scl_status check_finite(const char *name, const double *v, size_t length) {
  size_t i = scl_glm_count_finite(v, length);
  if (i == length) return SCL_OK;
  char message[64];
  snprintf(message, sizeof message, "'%s' is not finite at element %zu", name, i + 1);
  return fail_nonfinite(name, (int64_t)i + 1, message);
}

static scl_status check_count(const char *name, size_t given, size_t needed, const char *what) {
  if (given == needed) return SCL_OK;
  return scl_fail_argument(name, "'%s' must have length %zu, not %zu: %s", name, needed, given,
                           what);
}

/* The sizes of one evaluation. */
typedef struct {
  size_t vectors, classes, predictors, aux; /* aux: numbers for each vector */
} sizes;

static scl_status check_aux(const scl_glm *glm, const scl_glm_parameters *at, sizes *s) {
  const char *name = scl_glm_aux_name(glm->family);
  size_t n = scl_glm_nrow(glm);
  if (name == NULL) return SCL_OK;
  scl_glm_aux kind = GLM_FAMILY_AUX(glm->family);
  if (kind == SCL_GLM_CUTS) {
    s->aux = at->n_aux / s->vectors;
    SCL_TRY(check_count(name, at->n_aux, s->aux * s->vectors,
                        "the same number for each parameter vector"));
    if (glm->summary.most > (double)s->aux + 1)
      return scl_fail_argument("cuts",
                               "'cuts' has length %zu, for %zu classes, but 'y' has class %g",
                               s->aux, s->aux + 1, glm->summary.most);
    if (s->aux >= GLM_MOST_CLASSES)
      return scl_fail_argument("cuts", "'cuts' has length %zu, but at most %d is supported", s->aux,
                               GLM_MOST_CLASSES - 1);
  } else {
    s->aux = at->row_aux ? n : 1;
    SCL_TRY(check_count(name, at->n_aux, s->aux * s->vectors,
                        "one number, or one for each row of 'x'"));
  }
  for (size_t m = 0; m < s->vectors; m++)
    SCL_TRY(scl_glm_check_aux(glm->family, at->aux + m * s->aux, s->aux));
  return SCL_OK;
}

static scl_status check_parameters(const scl_glm *glm, const scl_glm_parameters *at, sizes *s) {
  size_t n = scl_glm_nrow(glm), p = scl_glm_ncol(glm);
  bool coupled = GLM_FAMILY_COUPLED(glm->family);
  *s = (sizes){.vectors = at->vectors > 0 ? at->vectors : 1,
               .classes = coupled && at->classes > 0 ? at->classes : 1};
  s->predictors = s->vectors * s->classes;
  SCL_TRY(check_count("beta", at->n_beta, p * s->predictors,
                      coupled ? "one number for each column of 'x' and class"
                              : "one number for each column of 'x'"));
  SCL_TRY(check_count("alpha", at->n_alpha, (at->row_alpha ? n : 1) * s->predictors,
                      coupled ? "one number for each class"
                              : "one number, or one for each row of 'x'"));
  SCL_TRY(check_finite("alpha", at->alpha, at->n_alpha));
  SCL_TRY(check_finite("beta", at->beta, at->n_beta));
  if (coupled && glm->summary.most > (double)s->classes) {
    return scl_fail_argument("y", "'y' has class %g, but 'beta' has %zu classes", glm->summary.most,
                             s->classes);
  }
  return check_aux(glm, at, s);
}

/* The error for a result that is not a number. */
static scl_status explain(const scl_glm *glm) {
  int64_t index = 0;
  scl_context *ctx = scl_glm_context(glm);
  SCL_TRY(scl_check_now(ctx, SCL_CHECK_FINITE, 0.0, SCL_GENERAL, scl_mat_block(glm->x), &index));
  if (index > 0) {
    int64_t n = (int64_t)scl_glm_nrow(glm);
    char message[96];
    snprintf(message, sizeof message, "'x' is not finite at [%lld, %lld]",
             (long long)((index - 1) % n + 1), (long long)((index - 1) / n + 1));
    return fail_nonfinite("x", index, message);
  }
  return fail_nonfinite("beta", 0, "the linear predictor or the gradient overflows");
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static void copy_numbers(double *to, const double *from, size_t n) {
  if (n > 0) memcpy(to, from, n * sizeof *to);
}

/* The auxiliary parameter in the form that the kernels need, at `to`. */
static void write_aux(const scl_glm *glm, const scl_glm_parameters *at, const sizes *s,
                      double *to) {
  scl_glm_aux kind = GLM_FAMILY_AUX(glm->family);
  if (kind == SCL_GLM_CUTS) {
    copy_numbers(to, at->aux, s->aux * s->vectors);
    return;
  }
  for (size_t m = 0; m < s->vectors && kind != SCL_GLM_NONE; m++) {
    glm_aux aux = glm_aux_number(at->aux[m]);
    *to++ = aux.value;
    *to++ = aux.log_value;
    *to++ = aux.inverse;
  }
}

/* Numbers of the auxiliary parameter in the pass, and of the sums for it. */
static void size_aux(const sizes *s, scl_glm_aux kind, bool wanted, scl_glm_pass *pass) {
  bool cuts = kind == SCL_GLM_CUTS, none = kind == SCL_GLM_NONE || pass->row_aux;
  pass->aux_count = none ? 0 : cuts ? s->aux : 3;
  pass->aux_sums = none || (cuts && !wanted) ? 0 : s->aux;
}

scl_status scl_glm_reserve(scl_glm_slot *o, size_t needed) {
  if (o->capacity >= needed) return SCL_OK;
  double *memory = realloc(o->memory, needed * sizeof *memory);
  if (memory == NULL) return scl_fail_memory(needed * sizeof *memory, 0, "parameters");
  o->memory = memory;
  o->capacity = needed;
  return SCL_OK;
}

void scl_glm_leave_abandoned(scl_glm_slot *o) {
  if (!o->state.abandoned) return;
  o->memory = NULL;
  o->capacity = 0;
  o->state.abandoned = false;
}

/* Lays out parameters and results in the slot's memory. */
static scl_status write_parameters(const scl_glm *glm, const scl_glm_parameters *at, const sizes *s,
                                   unsigned wanted, scl_glm_slot *o) {
  scl_glm_pass *pass = &o->pass;
  size_t n = scl_glm_nrow(glm);
  bool want_aux = (wanted & SCL_GLM_AUX) != 0;
  scl_glm_aux kind = GLM_FAMILY_AUX(glm->family);
  pass->row_aux = at->row_aux && (kind == SCL_GLM_SIGMA || kind == SCL_GLM_PHI);
  size_aux(s, kind, want_aux, pass);
  const scl_glm_layout to = scl_glm_layout_of(pass);
  bool by_row = (at->row_alpha && (wanted & SCL_GLM_ALPHA)) || (wanted & SCL_GLM_Y);
  size_t alpha_rows = by_row ? n * s->predictors : 0;
  size_t aux_rows = pass->row_aux && want_aux ? n * s->vectors : 0;
  size_t needed = to.parameters + to.results + alpha_rows + aux_rows;
  SCL_TRY(scl_glm_reserve(o, needed));
  double *parameters = o->memory, *rows = parameters + to.parameters + to.results;
  parameters[0] = 0.0;
  if (pass->row_aux) {
    copy_numbers(parameters + to.row_aux, at->aux, at->n_aux);
  } else {
    write_aux(glm, at, s, parameters + to.aux);
  }
  copy_numbers(parameters + to.alpha, at->alpha, at->n_alpha);
  copy_numbers(parameters + to.beta, at->beta, at->n_beta);
  pass->parameters = parameters;
  pass->results = parameters + to.parameters;
  if (alpha_rows > 0) pass->d_alpha_rows = rows;
  if (aux_rows > 0) pass->d_aux_rows = rows + alpha_rows;
  return SCL_OK;
}

/* Reads the data for phi by row: the terms of the host have to be added by row. */
static scl_status read_rows(scl_glm *glm) {
  size_t n = scl_glm_nrow(glm), bytes = (n > 0 ? n : 1) * scl_mat_ncol(glm->y) * sizeof(double);
  if (glm->rows != NULL) return SCL_OK;
  double *rows = malloc(bytes);
  if (rows == NULL) return scl_fail_memory(bytes, 0, "'y'");
  scl_status status = scl_mat_to_host(glm->y, rows);
  if (status == SCL_OK) {
    glm->rows = rows;
  } else {
    free(rows);
  }
  return status;
}

/* The results of the pass with the terms that the host adds; nothing fails from here on. */
static void write_results(const scl_glm *glm, const scl_glm_parameters *at, const sizes *s,
                          const scl_glm_pass *pass, unsigned wanted, const scl_glm_results *out) {
  const scl_glm_layout from = scl_glm_layout_of(pass);
  const double *results = pass->results;
  bool want_aux = (wanted & SCL_GLM_AUX) != 0;
  if (want_aux)
    copy_numbers(out->d_aux, pass->row_aux ? pass->d_aux_rows : results + from.d_aux, at->n_aux);
  for (size_t m = 0; m < s->vectors; m++) {
    out->value[m] = results[from.value + m] + glm->summary.constant;
    if (pass->row_aux && glm->rows != NULL) {
      size_t n = scl_glm_nrow(glm);
      const scl_glm_data rows = {.y = glm->rows, .weight = glm->weighted ? glm->rows + n : NULL};
      scl_glm_add_row_values(glm->family, &rows, at->aux + m * n, n, &out->value[m],
                             want_aux ? out->d_aux + m * n : NULL);
    } else if (glm->summary.distinct > 0) {
      scl_glm_add_values(glm->family, &glm->summary, at->aux + m * s->aux, s->aux, &out->value[m],
                         want_aux ? out->d_aux + m * s->aux : NULL);
    }
  }
  if (wanted & SCL_GLM_BETA) copy_numbers(out->d_beta, results + from.d_beta, at->n_beta);
  if (wanted & SCL_GLM_ALPHA) {
    copy_numbers(out->d_alpha, pass->row_alpha ? pass->d_alpha_rows : results + from.d_alpha,
                 at->n_alpha);
  }
  for (size_t i = 0; (wanted & SCL_GLM_Y) && i < scl_glm_nrow(glm) * s->vectors; i++)
    out->d_y[i] = -pass->d_alpha_rows[i];
}

/* -infinity is a valid density for a finite predictor, but not for an infinite one. */
static bool is_number(const scl_glm *glm, const scl_glm_pass *pass, const sizes *s) {
  const double *d_beta = pass->results + scl_glm_layout_of(pass).d_beta;
  size_t p = scl_glm_ncol(glm), per_vector = p * s->classes;
  for (size_t m = 0; m < s->vectors; m++) {
    double value = pass->results[m];
    if (isnan(value) || (isinf(value) && value > 0)) return false;
    if (isinf(value) || !pass->gradient) continue;
    if (scl_glm_count_finite(d_beta + m * per_vector, per_vector) < per_vector) return false;
  }
  return true;
}

/* The pass for these parameters, checked. */
static scl_status prepare(scl_glm *glm, const scl_glm_parameters *at, unsigned wanted, sizes *s,
                          scl_glm_slot *o) {
  SCL_TRY(check_parameters(glm, at, s));
  if ((wanted & SCL_GLM_X) && s->vectors > 1)
    return scl_fail_argument(
        "gradient",
        "the gradient with respect to 'x' is available for one parameter vector at a time only");
  SCL_TRY(scl_context_check(scl_glm_context(glm)));
  o->pass = (scl_glm_pass){.family = glm->family,
                           .x = scl_mat_block(glm->x),
                           .y = scl_mat_block(glm->y),
                           .vectors = s->vectors,
                           .classes = s->classes,
                           .row_alpha = at->row_alpha,
                           .weighted = glm->weighted,
                           .gradient = (wanted & SCL_GLM_BETA) != 0,
                           .state = &o->state};
  return write_parameters(glm, at, s, wanted, o);
}

scl_status scl_glm_evaluate(scl_glm *glm, const scl_glm_parameters *at, unsigned wanted,
                            const scl_glm_results *results) {
  scl_context *ctx = scl_glm_context(glm);
  scl_glm_slot *o = &glm->slot[0];
  sizes s;
  SCL_TRY(prepare(glm, at, wanted, &s, o));
  if (o->pass.row_aux && GLM_FAMILY_AUX(glm->family) == SCL_GLM_PHI) SCL_TRY(read_rows(glm));
  scl_mat *d_x = NULL;
  scl_status status = SCL_OK;
  if (wanted & SCL_GLM_X) {
    SCL_GO(scl_mat_create(ctx, scl_glm_nrow(glm), scl_glm_ncol(glm), SCL_GENERAL, &d_x));
    o->pass.d_x = scl_mat_block(d_x);
  }
  SCL_GO(ctx->engine->glm(ctx, &o->pass));
  if (!is_number(glm, &o->pass, &s)) SCL_GO(explain(glm));
  write_results(glm, at, &s, &o->pass, wanted, results);
  if (wanted & SCL_GLM_X) {
    *results->d_x = d_x;
    d_x = NULL;
  }
done:
  scl_glm_leave_abandoned(o);
  scl_mat_release(d_x);
  return status;
}

bool scl_glm_overlaps(const scl_glm *glm) {
  return scl_glm_context(glm)->engine->glm_begin != NULL;
}

scl_status scl_glm_begin(scl_glm *glm, int which, const scl_glm_parameters *at, unsigned wanted) {
  scl_context *ctx = scl_glm_context(glm);
  scl_glm_slot *o = &glm->slot[which];
  sizes s;
  SCL_TRY(prepare(glm, at, wanted, &s, o));
  const scl_status status = ctx->engine->glm_begin(ctx, &o->pass);
  scl_glm_leave_abandoned(o);
  return status;
}

scl_status scl_glm_end(scl_glm *glm, int which, const scl_glm_parameters *at, unsigned wanted,
                       const scl_glm_results *results) {
  scl_context *ctx = scl_glm_context(glm);
  scl_glm_slot *o = &glm->slot[which];
  sizes s;
  SCL_TRY(check_parameters(glm, at, &s));
  scl_status status = SCL_OK;
  SCL_GO(ctx->engine->glm_end(ctx, &o->pass));
  if (!is_number(glm, &o->pass, &s)) SCL_GO(explain(glm));
  write_results(glm, at, &s, &o->pass, wanted, results);
done:
  scl_glm_leave_abandoned(o);
  return status;
}
