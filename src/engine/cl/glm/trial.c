/* Trials of the pass of a GLM likelihood with matrix instructions: values and gradients of a few
 * rows are compared with those of the same family functions, compiled by the C compiler. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/trial.h"
#include "engine/pass/glm.h"

/* Two tiles of rows and a part of a third, and the memory for them, an even number of rows; fewer
 * columns and predictors than the layout holds; cuts of the ordered family. */
enum {
  TRIAL_ROWS = 37,
  TRIAL_LD = TRIAL_ROWS + 1,
  COLUMNS_LESS = 3,
  PREDICTORS_LESS = 1,
  CUTS = 2
};

/* A valid response for each family, with its datum. */
static double response(scl_glm_family family, size_t i) {
  if (GLM_IS(BINARY, family)) return (double)(i % 3 == 0);
  if (GLM_FAMILY_COUPLED(family) || GLM_FAMILY_AUX(family) == SCL_GLM_CUTS)
    return (double)(1 + i % 3);
  return (double)(i % (GLM_FAMILY_DATUM(family) ? 5 : 7));
}

/* Input and output of a pass, in host memory. */
typedef struct {
  scl_glm_pass pass;
  double *memory, *x, *y, *parameters, *results, *expected;
  size_t numbers;  /* of the results */
  bool *abandoned; /* after a fault the device may still use the memory: it is never freed */
} trial_case;

static void write_aux(trial_case *c, double *to) {
  const scl_glm_aux aux = GLM_FAMILY_AUX(c->pass.family);
  for (size_t v = 0; v < c->pass.vectors; v++) {
    const double number = 1.5 + (double)v / 8.0;
    const double given[] = {number, log(number), 1.0 / number}, cuts[CUTS] = {-0.5, number};
    memcpy(to, aux == SCL_GLM_CUTS ? cuts : given, c->pass.aux_count * sizeof *to);
    to += c->pass.aux_count;
  }
}

/* Columns of X are small, so that predictors are too. */
static void write_data(trial_case *c, size_t p, size_t predictors) {
  for (size_t i = 0; i < TRIAL_LD * p; i++)
    c->x[i] = scl_cl_trial_number(i % TRIAL_LD, i / TRIAL_LD) / (8.0 * (double)p);
  for (size_t i = 0; i < TRIAL_ROWS; i++) {
    c->y[i] = response(c->pass.family, i);
    c->y[TRIAL_LD + i] = 5.0; /* trials */
  }
  c->parameters[0] = 0.0;
  const scl_glm_layout at = scl_glm_layout_of(&c->pass);
  write_aux(c, c->parameters + at.aux);
  for (size_t i = 0; i < predictors * (1 + p); i++)
    c->parameters[(size_t)at.alpha + i] = scl_cl_trial_number(i, 3) / 16.0;
  c->numbers = (size_t)at.results;
}

static scl_status create_case(const scl_cl_glm_form *form, trial_case *c) {
  const size_t p = form->columns - COLUMNS_LESS, predictors = form->predictors - PREDICTORS_LESS;
  const bool coupled = GLM_FAMILY_COUPLED(form->family);
  const size_t results = predictors * (2 + CUTS + p), most = 1 + predictors * (4 + p);
  const size_t numbers = TRIAL_LD * (p + 2) + most + 2 * results;
  c->memory = calloc(numbers, sizeof *c->memory);
  if (c->memory == NULL)
    return scl_fail_memory(numbers * sizeof *c->memory, 0, "the trial of a kernel");
  c->x = c->memory;
  c->y = c->x + TRIAL_LD * p;
  c->parameters = c->y + 2 * TRIAL_LD;
  c->results = c->parameters + most;
  c->expected = c->results + results;
  const scl_glm_aux aux = GLM_FAMILY_AUX(form->family);
  c->pass = (scl_glm_pass){.family = form->family,
                           .x = {.nrow = TRIAL_ROWS, .ncol = p},
                           .vectors = coupled ? 1 : predictors,
                           .classes = coupled ? predictors : 1,
                           .aux_count = aux == SCL_GLM_NONE   ? 0
                                        : aux == SCL_GLM_CUTS ? CUTS
                                                              : 3,
                           .aux_sums = aux == SCL_GLM_NONE   ? 0
                                       : aux == SCL_GLM_CUTS ? CUTS
                                                             : 1,
                           .gradient = true,
                           .parameters = c->parameters};
  write_data(c, p, predictors);
  return SCL_OK;
}

/* ---- what is expected ------------------------------------------------------------------------ */
/* The terms of row i for vector m: predictors in eta become residuals. Returns the value; `aux`
 * gets the derivatives with respect to the auxiliary parameter of the family. */
static double add_terms(const trial_case *c, size_t i, size_t m, double *eta, double *aux) {
  const scl_glm_pass *pass = &c->pass;
  const int family = pass->family;
  const scl_glm_aux kind = GLM_FAMILY_AUX(family);
  const double y = c->y[i],
               *given = c->parameters + scl_glm_layout_of(pass).aux + m * pass->aux_count;
  if (GLM_FAMILY_COUPLED(family)) return glm_classes(y, eta, 1, (int)pass->classes);
  const glm_aux number = kind == SCL_GLM_NONE   ? glm_aux_none()
                         : kind == SCL_GLM_CUTS ? glm_aux_cuts(given, (int)pass->aux_count, y)
                                                : glm_aux_given(given);
  const double datum = GLM_FAMILY_DATUM(family) ? c->y[TRIAL_LD + i] : 0.0;
  const glm_term term = glm_family_term(family, y, datum, eta[0], number);
  const size_t above = (size_t)y - 1;
  eta[0] = term.d_eta;
  if (kind == SCL_GLM_CUTS) {
    if (above < pass->aux_sums) aux[above] += term.d_aux;
    if (above > 0) aux[above - 1] += term.d_low;
  } else if (kind != SCL_GLM_NONE) {
    aux[0] += term.d_aux;
  }
  return glm_term_value(family, term);
}

static void expect_results(const trial_case *c, size_t p, size_t predictors) {
  const scl_glm_pass *pass = &c->pass;
  const scl_glm_layout at = scl_glm_layout_of(pass);
  const double *alpha = c->parameters + at.alpha, *beta = c->parameters + at.beta;
  double *value = c->expected + at.value, *aux = c->expected + at.d_aux;
  double *d_alpha = c->expected + at.d_alpha, *d_beta = c->expected + at.d_beta, eta[16];
  for (size_t i = 0; i < TRIAL_ROWS; i++) {
    for (size_t v = 0; v < predictors; v++) {
      eta[v] = alpha[v];
      for (size_t j = 0; j < p; j++) eta[v] += c->x[i + j * TRIAL_LD] * beta[j + v * p];
    }
    for (size_t m = 0; m < pass->vectors; m++)
      value[m] += add_terms(c, i, m, eta + m * pass->classes, aux + m * pass->aux_sums);
    for (size_t v = 0; v < predictors; v++) {
      d_alpha[v] += eta[v];
      for (size_t j = 0; j < p; j++) d_beta[j + v * p] += c->x[i + j * TRIAL_LD] * eta[v];
    }
  }
}

/* ---- the trial ------------------------------------------------------------------------------- */
static scl_status run_pass(scl_cl_context *cl, const trial_case *c, size_t p) {
  scl_glm_pass pass = c->pass;
  scl_glm_state state = {0};
  scl_status status;
  pass.results = c->results;
  pass.state = &state;
  SCL_GO(scl_cl_trial_upload(cl, c->x, TRIAL_LD, p, &pass.x));
  SCL_GO(scl_cl_trial_upload(cl, c->y, TRIAL_LD, 2, &pass.y));
  pass.x.nrow = pass.y.nrow = TRIAL_ROWS;
  SCL_GO(scl_cl_glm(&cl->base, &pass));
done:
  scl_buffer_release(pass.x.buffer);
  scl_buffer_release(pass.y.buffer);
  scl_buffer_release(state.work.buffer);
  *c->abandoned = state.abandoned;
  return status;
}

scl_status scl_cl_trial_glm(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const scl_cl_glm_form form = scl_cl_glm_form_of(which);
  const size_t p = form.columns - COLUMNS_LESS;
  const char *wanted = scl_cl_glm_wanted();
  bool abandoned = false;
  trial_case c = {.abandoned = &abandoned};
  scl_status status;
  SCL_GO(create_case(&form, &c));
  expect_results(&c, p, form.predictors - PREDICTORS_LESS);
  scl_cl_glm_force(form.layout);
  status = run_pass(cl, &c, p);
  scl_cl_glm_force(wanted);
  if (status == SCL_OK) *right = scl_cl_trial_is_near(c.results, c.expected, c.numbers, 1e-10);
done:
  if (!abandoned) free(c.memory);
  return status;
}
