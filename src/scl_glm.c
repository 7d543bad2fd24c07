#include "scl_glm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scl_operation.h"

struct scl_glm {
  scl_glm_family family;
  scl_mat *x, *y;
  double *memory; /* parameters and results of one evaluation, as the pass wants them */
  size_t capacity;
  scl_block work;
};

/* ---- families -------------------------------------------------------------------------------- */

static const char *const family_name[] = {
#define ROW(NAME, name, support, words) #name,
    SCL_GLM_FAMILIES(ROW)
#undef ROW
};

static const char *const support_words[] = {
#define ROW(NAME, name, support, words) words,
    SCL_GLM_FAMILIES(ROW)
#undef ROW
};

const char *scl_glm_family_name(scl_glm_family family) {
  return family_name[family];
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

static bool supports(scl_glm_family family, double y) {
  switch (family) {
#define ROW(NAME, name, support, words)                                                            \
  case SCL_GLM_##NAME:                                                                             \
    return (support);
    SCL_GLM_FAMILIES(ROW)
#undef ROW
  default:
    return false;
  }
}

static scl_status check_support(scl_glm_family family, const double *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (supports(family, y[i])) continue;
    char value[32];
    snprintf(value, sizeof value, "%g", y[i]);
    scl_fail_argument("y", "'y' must be %s for the family %s, but y[%zu] is %s",
                      support_words[family], family_name[family], i + 1,
                      isnan(y[i]) ? "NA or NaN" : value);
    scl_fault_edit()->index = (int64_t)i + 1;
    return SCL_E_ARGUMENT;
  }
  return SCL_OK;
}

/* ---- the data -------------------------------------------------------------------------------- */

static scl_status upload_response(scl_context *ctx, const double *y, size_t n_y, size_t n,
                                  scl_mat **out) {
  if (n_y == n) return scl_mat_from_host(ctx, y, n, 1, SCL_GENERAL, out);
  double *rows = malloc((n > 0 ? n : 1) * sizeof *rows);
  if (rows == NULL) return scl_fail_memory(n * sizeof *rows, 0, "'y'");
  for (size_t i = 0; i < n; i++) rows[i] = y[0];
  scl_status status = scl_mat_from_host(ctx, rows, n, 1, SCL_GENERAL, out);
  free(rows);
  return status;
}

scl_status scl_glm_create(scl_glm_family family, const double *y, size_t n_y, scl_mat *x,
                          scl_glm **out) {
  size_t n = scl_mat_nrow(x);
  if (n_y != n && n_y != 1) {
    return scl_fail_argument("y", "'y' has length %zu, but 'x' has %zu rows", n_y, n);
  }
  SCL_TRY(check_support(family, y, n_y));
  scl_glm *glm = calloc(1, sizeof *glm);
  if (glm == NULL) return scl_fail_memory(sizeof *glm, 0, "a likelihood");
  glm->family = family;
  scl_status status = upload_response(scl_mat_context(x), y, n_y, n, &glm->y);
  if (status != SCL_OK) {
    free(glm);
    return status;
  }
  glm->x = scl_mat_retain(x);
  *out = glm;
  return SCL_OK;
}

void scl_glm_release(scl_glm *glm) {
  if (glm == NULL) return;
  scl_buffer_release(glm->work.buffer);
  scl_mat_release(glm->y);
  scl_mat_release(glm->x);
  free(glm->memory);
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
  uint64_t work = glm->work.buffer != NULL ? glm->work.buffer->bytes : 0;
  return scl_mat_bytes(glm->x) + scl_mat_bytes(glm->y) + work;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static scl_status fail_nonfinite(const char *argument, int64_t index, const char *message) {
  scl_fail_index(SCL_E_NONFINITE, index, "%s", message);
  snprintf(scl_fault_edit()->argument, sizeof scl_fault_edit()->argument, "%s", argument);
  return SCL_E_NONFINITE;
}

static size_t count_finite(const double *v, size_t n) {
  size_t i = 0;
  while (i < n && isfinite(v[i])) i++;
  return i;
}

/* Parameters are few and at hand, so they are looked at before the work: an infinite beta need not
 * show in the value. */
static scl_status check_parameters(const scl_glm *glm, const scl_glm_parameters *parameters) {
  size_t n = scl_glm_nrow(glm), p = scl_glm_ncol(glm);
  if (parameters->n_beta != p) {
    return scl_fail_argument("beta", "'beta' has length %zu, but 'x' has %zu columns",
                             parameters->n_beta, p);
  }
  if (parameters->n_alpha != 1 && parameters->n_alpha != n) {
    return scl_fail_argument("alpha",
                             "'alpha' has length %zu, but must have 1 or %zu (rows of 'x')",
                             parameters->n_alpha, n);
  }
  const double *vectors[] = {parameters->alpha, parameters->beta};
  const size_t lengths[] = {parameters->n_alpha, p};
  const char *const names[] = {"alpha", "beta"};
  for (int v = 0; v < 2; v++) {
    size_t i = count_finite(vectors[v], lengths[v]);
    if (i == lengths[v]) continue;
    char message[64];
    snprintf(message, sizeof message, "'%s' is not finite at %zu", names[v], i + 1);
    return fail_nonfinite(names[v], (int64_t)i + 1, message);
  }
  return SCL_OK;
}

/* Finds out why a result is not finite. */
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

/* Room for beta, alpha, value, d_beta and d_alpha. */
static scl_status reserve(scl_glm *glm, size_t n_alpha) {
  size_t needed = 2 * (scl_glm_ncol(glm) + n_alpha) + 1;
  if (glm->capacity >= needed) return SCL_OK;
  double *memory = realloc(glm->memory, needed * sizeof *memory);
  if (memory == NULL) return scl_fail_memory(needed * sizeof *memory, 0, "parameters");
  glm->memory = memory;
  glm->capacity = needed;
  return SCL_OK;
}

static void copy_numbers(double *to, const double *from, size_t n) {
  if (n > 0) memcpy(to, from, n * sizeof *to);
}

scl_status scl_glm_evaluate(scl_glm *glm, const scl_glm_parameters *parameters, unsigned wanted,
                            const scl_glm_results *results) {
  scl_context *ctx = scl_glm_context(glm);
  size_t n = scl_glm_nrow(glm), p = scl_glm_ncol(glm), n_alpha = parameters->n_alpha;
  SCL_TRY(check_parameters(glm, parameters));
  SCL_TRY(scl_context_check(ctx));
  SCL_TRY(reserve(glm, n_alpha));
  double *given = glm->memory, *found = given + p + n_alpha;
  copy_numbers(given, parameters->beta, p);
  copy_numbers(given + p, parameters->alpha, n_alpha);

  scl_mat *d_x = NULL;
  bool abandoned = false;
  scl_glm_pass pass = {.family = glm->family,
                       .x = scl_mat_block(glm->x),
                       .y = scl_mat_block(glm->y),
                       .parameters = given,
                       .results = found,
                       .rowwise = n_alpha != 1,
                       .wanted = wanted,
                       .work = &glm->work,
                       .abandoned = &abandoned};
  scl_status status = SCL_OK;
  if (wanted & SCL_GLM_X) {
    SCL_GO(scl_mat_create(ctx, n, p, SCL_GENERAL, &d_x));
    pass.d_x = scl_mat_block(d_x);
  }
  SCL_GO(ctx->engine->glm(ctx, &pass));
  size_t numbers = 1 + (wanted & SCL_GLM_BETA ? p : 0);
  if (count_finite(found, numbers) < numbers) SCL_GO(explain(glm));

  *results->value = found[0];
  if (wanted & SCL_GLM_BETA) copy_numbers(results->d_beta, found + 1, p);
  if (wanted & SCL_GLM_ALPHA) copy_numbers(results->d_alpha, found + 1 + p, n_alpha);
  if (wanted & SCL_GLM_X) {
    *results->d_x = d_x;
    d_x = NULL;
  }
done:
  if (abandoned) { /* rather lost than written to after it is something else */
    glm->memory = NULL;
    glm->capacity = 0;
  }
  scl_mat_release(d_x);
  return status;
}
