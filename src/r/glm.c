/* .Call entries for likelihoods of generalised linear models. */
#include "r/entries.h"
#include "r/pointer.h"
#include "r/program.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "ops/glm.h"

/* ---- arguments ------------------------------------------------------------------------------- */

/* A vector of numbers as double; R_NilValue for anything else. Protect it. */
static SEXP as_double(SEXP x) {
  if (TYPEOF(x) == REALSXP && !Rf_isObject(x)) return x;
  bool number = TYPEOF(x) == REALSXP || TYPEOF(x) == LGLSXP || TYPEOF(x) == INTSXP;
  return number && !Rf_isFactor(x) ? Rf_coerceVector(x, REALSXP) : R_NilValue;
}

static scl_status require_numbers(SEXP x, const char *argument) {
  if (TYPEOF(x) == REALSXP) return SCL_OK;
  return scl_fail_argument(argument, "'%s' must be a numeric vector", argument);
}

/* The parameters of one evaluation. `given` are alpha, beta and the auxiliary parameter as doubles;
 * `numbers` are the same with scalars recycled. */
enum { ALPHA, BETA, AUX, GIVEN };
static const unsigned bit_of[GIVEN] = {SCL_GLM_ALPHA, SCL_GLM_BETA, SCL_GLM_AUX};

typedef struct {
  scl_glm_family family;
  size_t n, p;
  unsigned wanted;
  SEXP given[GIVEN];
  const double *numbers[GIVEN];
  size_t count[GIVEN];
  bool by_row[GIVEN];
  size_t vectors, classes;
  bool one_beta; /* one number for all columns: its gradient is a sum */
} arguments;

/* Names of auxiliary parameters, in the order of scl_glm_aux. */
static const char *const aux_names[] = {"", "sigma", "phi", "cuts"};

/* One bit for each requested name. */
static scl_status read_wanted(SEXP gradient, scl_glm_family family, unsigned *out) {
  const char *aux = aux_names[GLM_FAMILY_AUX(family)];
  const char *const name[] = {"alpha", "beta", "x", aux, "y"};
  unsigned wanted = 0;
  int names = GLM_FAMILY_AUX(family) == SCL_GLM_SIGMA ? 5 : *aux != '\0' ? 4 : 3;
  if (gradient != R_NilValue && TYPEOF(gradient) != STRSXP) {
    return scl_fail_argument("gradient", "'gradient' must be NULL or names of arguments");
  }
  for (R_xlen_t i = 0; i < Rf_xlength(gradient); i++) {
    const char *asked = CHAR(STRING_ELT(gradient, i));
    int k = 0;
    while (k < names && strcmp(asked, name[k]) != 0) k++;
    if (k == names) {
      return scl_fail_argument(
          "gradient",
          "'gradient' must contain only \"alpha\", \"beta\"%s%s%s%s and \"x\", not \"%.40s\"",
          names > 3 ? ", \"" : "", aux, names > 3 ? "\"" : "", names > 4 ? ", \"y\"" : "", asked);
    }
    wanted |= 1u << k;
  }
  *out = wanted;
  return SCL_OK;
}

/* `aux` holds sigma, phi and cuts: that of the family must be given, and no other. */
static scl_status read_aux(arguments *at, const SEXP *aux) {
  scl_glm_aux kind = GLM_FAMILY_AUX(at->family);
  const char *family = scl_glm_family_name(at->family);
  for (int k = 1; k <= 3; k++) {
    bool there = aux[k - 1] != R_NilValue;
    if (there && k != (int)kind)
      return scl_fail_argument(aux_names[k], "family %s has no parameter '%s'", family,
                               aux_names[k]);
    if (!there && k == (int)kind)
      return scl_fail_argument(aux_names[k], "family %s needs '%s'", family, aux_names[k]);
  }
  at->given[AUX] = kind == SCL_GLM_NONE ? R_NilValue : as_double(aux[kind - 1]);
  return SCL_OK;
}

/* Length of dimension `which` (from 0), or `otherwise` where x has fewer. */
static size_t dimension(SEXP x, int which, size_t otherwise) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  return TYPEOF(dim) == INTSXP && XLENGTH(dim) > which ? (size_t)INTEGER(dim)[which] : otherwise;
}

/* How many classes and parameter vectors beta has: it is p x M, or p x C x M. */
static scl_status read_shape(arguments *at) {
  SEXP beta = at->given[BETA];
  bool coupled = GLM_FAMILY_COUPLED(at->family);
  size_t numbers = (size_t)XLENGTH(beta);
  bool shaped = Rf_getAttrib(beta, R_DimSymbol) != R_NilValue && dimension(beta, 0, 0) == at->p;
  at->vectors = at->classes = 1;
  if (coupled) {
    if (!shaped) {
      return scl_fail_argument("beta",
                               "'beta' must be a matrix with one row for each column of 'x' "
                               "and one column for each class");
    }
    at->classes = dimension(beta, 1, 1);
    at->vectors = dimension(beta, 2, 1);
    if (at->classes == 0) return scl_fail_argument("beta", "'beta' must have at least one column");
  } else if (shaped && numbers != at->p) {
    at->vectors = dimension(beta, 1, 1);
  } else if (shaped && at->p == 0) {
    at->vectors = dimension(beta, 1, 1);
  }
  if (at->vectors == 0) at->vectors = 1;
  return SCL_OK;
}

/* One number for all, one for each predictor or vector (`each` of them), or one for each row of
 * each. The core refuses other lengths. */
static void read_auxiliary(arguments *at, int which, size_t each, bool by_row) {
  SEXP x = at->given[which];
  size_t numbers = (size_t)XLENGTH(x);
  at->numbers[which] = REAL_RO(x);
  at->count[which] = numbers;
  if (numbers == 1 && each > 1) {
    double *all = (double *)R_alloc(each, sizeof *all);
    for (size_t i = 0; i < each; i++) all[i] = REAL_RO(x)[0];
    at->numbers[which] = all;
    at->count[which] = each;
  } else {
    at->by_row[which] = by_row && numbers != each && (at->n == 0 || numbers == at->n * each);
  }
}

/* Phase 1: everything but the handle; allocates. Protects what it makes: *protected of them. */
static scl_status read_arguments(arguments *at, SEXP alpha, SEXP beta, const SEXP *aux,
                                 SEXP gradient, int *protects) {
  SCL_TRY(read_wanted(gradient, at->family, &at->wanted));
  SCL_TRY(read_aux(at, aux));
  PROTECT(at->given[AUX]);
  at->given[ALPHA] = PROTECT(as_double(alpha));
  at->given[BETA] = PROTECT(as_double(beta));
  *protects += 3;
  SCL_TRY(require_numbers(at->given[ALPHA], "alpha"));
  SCL_TRY(require_numbers(at->given[BETA], "beta"));
  scl_glm_aux kind = GLM_FAMILY_AUX(at->family);
  SCL_TRY(read_shape(at));
  at->one_beta = !GLM_FAMILY_COUPLED(at->family) && at->p > 1 && XLENGTH(at->given[BETA]) == 1;
  read_auxiliary(at, BETA, at->one_beta ? at->p : 0, false);
  read_auxiliary(at, ALPHA, at->vectors * at->classes, !GLM_FAMILY_COUPLED(at->family));
  if (kind != SCL_GLM_NONE) {
    SCL_TRY(require_numbers(at->given[AUX], aux_names[kind]));
    read_auxiliary(at, AUX, kind == SCL_GLM_CUTS ? 0 : at->vectors, kind != SCL_GLM_CUTS);
  }
  return SCL_OK;
}

/* ---- the value with its gradient ------------------------------------------------------------- */

/* A vector shaped and named like the argument whose gradient it is; longer than a scalar that was
 * recycled. */
static SEXP new_like(SEXP x, size_t numbers) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)numbers));
  if (ANY_ATTRIB(x) && (size_t)XLENGTH(x) == numbers) {
    SEXP const kept[] = {R_NamesSymbol, R_DimSymbol, R_DimNamesSymbol};
    for (int k = 0; k < 3; k++) {
      SEXP attribute = Rf_getAttrib(x, kept[k]);
      if (attribute != R_NilValue) Rf_setAttrib(result, kept[k], attribute);
    }
  }
  UNPROTECT(1);
  return result;
}

/* Where the gradients of a result are. */
typedef struct {
  SEXP parameter[GIVEN], x, y;
  double *by_column; /* by each column's coefficient, where beta is one number */
} gradients;

/* Phase 1: one number for each vector, with the attribute "gradient" if any is wanted. The gradient
 * with respect to x is a handle if `resident`. Protect it. */
static SEXP new_value(const arguments *at, bool resident, gradients *out) {
  *out = (gradients){0};
  if (at->one_beta) out->by_column = (double *)R_alloc(at->p, sizeof(double));
  SEXP value = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)at->vectors));
  if (at->wanted != 0) {
    const char *names[6] = {"", "", "", "", "", ""};
    int count = 0;
    if (at->wanted & SCL_GLM_ALPHA) names[count++] = "alpha";
    if (at->wanted & SCL_GLM_BETA) names[count++] = "beta";
    if (at->wanted & SCL_GLM_X) names[count++] = "x";
    if (at->wanted & SCL_GLM_AUX) names[count++] = aux_names[GLM_FAMILY_AUX(at->family)];
    if (at->wanted & SCL_GLM_Y) names[count++] = "y";
    SEXP list = PROTECT(Rf_mkNamed(VECSXP, names));
    count = 0;
    for (int k = 0; k < GIVEN; k++) {
      if (k == AUX && (at->wanted & SCL_GLM_X)) {
        SET_VECTOR_ELT(list, count++, out->x = r_result_new(resident, at->n, at->p));
      }
      if (!(at->wanted & bit_of[k])) continue;
      size_t numbers = k == BETA && at->one_beta ? 1 : at->count[k];
      SET_VECTOR_ELT(list, count++, out->parameter[k] = new_like(at->given[k], numbers));
    }
    if (at->wanted & SCL_GLM_Y) {
      SEXP y = Rf_allocMatrix(REALSXP, (int)at->n, (int)at->vectors);
      SET_VECTOR_ELT(list, count++, out->y = y);
    }
    Rf_setAttrib(value, Rf_install("gradient"), list);
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return value;
}

/* Phase 2. */
static scl_status evaluate(scl_glm *glm, const arguments *at, SEXP value, const gradients *to) {
  scl_mat *d_x = NULL;
  double *slot[GIVEN];
  for (int k = 0; k < GIVEN; k++) slot[k] = at->wanted & bit_of[k] ? REAL(to->parameter[k]) : NULL;
  const scl_glm_parameters parameters = {.vectors = at->vectors,
                                         .classes = at->classes,
                                         .row_alpha = at->by_row[ALPHA],
                                         .row_aux = at->by_row[AUX],
                                         .alpha = at->numbers[ALPHA],
                                         .beta = at->numbers[BETA],
                                         .aux = at->numbers[AUX],
                                         .n_alpha = at->count[ALPHA],
                                         .n_beta = at->count[BETA],
                                         .n_aux = at->count[AUX]};
  const scl_glm_results results = {.value = REAL(value),
                                   .d_alpha = slot[ALPHA],
                                   .d_beta = at->one_beta ? to->by_column : slot[BETA],
                                   .d_aux = slot[AUX],
                                   .d_y = to->y != NULL ? REAL(to->y) : NULL,
                                   .d_x = &d_x};
  SCL_TRY(scl_glm_evaluate(glm, &parameters, at->wanted, &results));
  if (at->one_beta && slot[BETA] != NULL) {
    double sum = 0.0;
    for (size_t j = 0; j < at->p; j++) sum += to->by_column[j];
    *slot[BETA] = sum;
  }
  scl_status status = d_x != NULL ? r_result_set(to->x, &d_x) : SCL_OK;
  scl_mat_release(d_x);
  return status;
}

static scl_status create(scl_glm_family family, SEXP y, SEXP trials, SEXP weights, SEXP x,
                         SEXP where, scl_glm **out) {
  scl_status status = SCL_OK;
  scl_context *ctx = NULL;
  scl_mat *matrix = NULL;
  SCL_GO(require_numbers(y, "y"));
  if (trials != R_NilValue) SCL_GO(require_numbers(trials, "trials"));
  if (weights != R_NilValue) SCL_GO(require_numbers(weights, "weights"));
  SCL_GO(r_context_pick(where, 1, &x, &ctx));
  SCL_GO(r_operand(ctx, x, "x", &matrix));
  if (weights != R_NilValue && (size_t)XLENGTH(weights) != scl_mat_nrow(matrix))
    SCL_GO(scl_fail_argument("weights", "'weights' must have one value for each row of 'x'"));
  const scl_glm_data data = {.y = REAL_RO(y),
                             .datum = r_numbers(trials),
                             .n_y = (size_t)XLENGTH(y),
                             .n_datum = (size_t)Rf_xlength(trials),
                             .weight = r_numbers(weights)};
  SCL_GO(scl_glm_create(family, &data, matrix, out));
done:
  scl_mat_release(matrix);
  return status;
}

SEXP r_glm_lpdf(SEXP family, SEXP y, SEXP trials, SEXP x, SEXP alpha, SEXP beta, SEXP sigma,
                SEXP phi, SEXP cuts, SEXP gradient, SEXP where) {
  arguments at = {.n = r_nrow(x, "x"), .p = r_ncol(x, "x")};
  const SEXP aux[] = {sigma, phi, cuts};
  int protects = 0;
  scl_status status = scl_glm_family_find(r_string(family), &at.family);
  if (status == SCL_OK) status = read_arguments(&at, alpha, beta, aux, gradient, &protects);
  if (status != SCL_OK) r_throw();
  gradients to;
  SEXP value = PROTECT(new_value(&at, r_is_handle(x), &to));
  scl_glm *glm = NULL;
  status = create(at.family, y, trials, R_NilValue, x, where, &glm);
  if (status == SCL_OK) status = evaluate(glm, &at, value, &to);
  scl_glm_release(glm);
  UNPROTECT(protects + 1);
  return r_return(status, value);
}

/* ---- likelihoods that stay ------------------------------------------------------------------- */

R_POINTER_KIND(likelihood, "statcl_glm", scl_glm)

scl_glm *r_glm_usable(SEXP handle) {
  return r_pointer_usable(&likelihood, handle);
}

/* The handle keeps x alive: on the host it is used in R's memory. */
SEXP r_glm_new(SEXP family, SEXP y, SEXP trials, SEXP weights, SEXP x, SEXP where) {
  scl_glm_family which;
  if (scl_glm_family_find(r_string(family), &which) != SCL_OK) r_throw();
  SEXP handle = PROTECT(r_pointer_new(&likelihood, x));
  scl_glm *glm = NULL;
  scl_status status = create(which, y, trials, weights, x, where, &glm);
  if (status == SCL_OK) r_pointer_set(handle, glm);
  UNPROTECT(1);
  return r_return(status, handle);
}

/* NULL if the handle has to be created again. */
SEXP r_glm_evaluate(SEXP handle, SEXP alpha, SEXP beta, SEXP sigma, SEXP phi, SEXP cuts,
                    SEXP gradient) {
  scl_glm *glm = r_pointer_usable(&likelihood, handle);
  if (glm == NULL) return R_NilValue;
  arguments at = {.family = scl_glm_family_of(glm), .n = scl_glm_nrow(glm), .p = scl_glm_ncol(glm)};
  const SEXP aux[] = {sigma, phi, cuts};
  int protects = 0;
  if (read_arguments(&at, alpha, beta, aux, gradient, &protects) != SCL_OK) r_throw();
  gradients to;
  SEXP value = PROTECT(new_value(&at, r_is_handle(R_ExternalPtrProtected(handle)), &to));
  scl_status status = evaluate(glm, &at, value, &to);
  UNPROTECT(protects + 1);
  return r_return(status, value);
}

/* What a sampler requests for so many chains at once, at zeros: an evaluation with its gradient,
 * and the shortest walk if there are any. *points: the number of evaluations. */
static scl_status rehearse(scl_glm *glm, size_t vectors, size_t *points) {
  enum { POINTS = 2, STARTS = 6 };
  const bool has_aux = GLM_FAMILY_AUX(scl_glm_family_of(glm)) != SCL_GLM_NONE;
  const size_t p = scl_glm_ncol(glm), d = 1 + p;
  const size_t starts = STARTS * d * vectors, record = POINTS * (2 * d + 1) * vectors;
  double *zero = (double *)R_alloc(starts + record, sizeof *zero);
  double *one = (double *)R_alloc(vectors, sizeof *one);
  size_t *turn = (size_t *)R_alloc(vectors, sizeof *turn),
         *valid = (size_t *)R_alloc(vectors, sizeof *valid);
  memset(zero, 0, (starts + record) * sizeof *zero);
  for (size_t v = 0; v < vectors; v++) {
    one[v] = 1.0;
    turn[v] = POINTS;
  }
  const scl_glm_parameters parameters = {.vectors = vectors,
                                         .alpha = zero,
                                         .beta = zero,
                                         .aux = one,
                                         .n_alpha = vectors,
                                         .n_beta = p * vectors,
                                         .n_aux = has_aux ? vectors : 0};
  double *to = zero + starts;
  const scl_glm_results results = {
      .value = to, .d_alpha = to + vectors, .d_aux = to + 2 * vectors, .d_beta = to + 3 * vectors};
  const unsigned wanted = SCL_GLM_ALPHA | SCL_GLM_BETA | (has_aux ? SCL_GLM_AUX : 0);
  *points = 1;
  SCL_TRY(scl_glm_evaluate(glm, &parameters, wanted, &results));
  if (scl_glm_walk_most(glm) < POINTS) return SCL_OK;
  *points += POINTS;
  const scl_glm_walk_task task = {
      .points = POINTS, .vectors = vectors, .start = zero, .turn = turn, .record = to};
  SCL_TRY(scl_glm_walk_begin(glm, 0, &task));
  return scl_glm_walk_end(glm, 0, &task, valid);
}

/* NULL: chains go one by one, or the handle has to be created again. */
static scl_glm *sampled_together(SEXP handle) {
  scl_glm *glm = r_pointer_usable(&likelihood, handle);
  const bool alone = glm != NULL && (GLM_FAMILY_COUPLED(scl_glm_family_of(glm)) ||
                                     GLM_FAMILY_AUX(scl_glm_family_of(glm)) == SCL_GLM_CUTS);
  return alone ? NULL : glm;
}

/* Chains end at different times: fewer of them may need other kernels. */
SEXP r_glm_rehearse(SEXP handle, SEXP vectors) {
  enum { FEW = 16 };
  scl_glm *glm = sampled_together(handle);
  if (glm == NULL) return R_NilValue;
  const size_t most = (size_t)Rf_asInteger(vectors);
  size_t points;
  scl_status status = rehearse(glm, most, &points);
  for (size_t k = 1; k < most && k <= FEW && status == SCL_OK; k++)
    status = rehearse(glm, k, &points);
  return r_return(status == SCL_E_NONFINITE ? SCL_OK : status, R_NilValue); /* what zeros give */
}

/* The seconds of one evaluation of so many chains, the least of a few; NULL if zeros give none. */
SEXP r_glm_pace(SEXP handle, SEXP vectors) {
  enum { TIMED = 3, ENOUGH_US = 50000 };
  scl_glm *glm = sampled_together(handle);
  if (glm == NULL) return R_NilValue;
  const uint64_t begin = scl_clock_us();
  double seconds = INFINITY;
  scl_status status = SCL_OK;
  for (int k = 0; k <= TIMED && (k < 2 || scl_clock_us() - begin < ENOUGH_US); k++) {
    const uint64_t start = scl_clock_us();
    size_t points;
    status = rehearse(glm, (size_t)Rf_asInteger(vectors), &points);
    if (status == SCL_E_NONFINITE) return r_return(SCL_OK, R_NilValue);
    if (status != SCL_OK) break;
    const double here = 1e-6 * (double)(scl_clock_us() - start) / (double)points;
    if (k > 0) seconds = fmin(seconds, here); /* the first one may wait for the data */
  }
  return r_return(status, Rf_ScalarReal(seconds));
}

/* Facts for printing, NULL as above: engine (the device with its id) and bytes held. */
SEXP r_glm_info(SEXP handle) {
  scl_glm *glm = r_pointer_usable(&likelihood, handle);
  if (glm == NULL) return R_NilValue;
  const scl_context *ctx = scl_glm_context(glm);
  return r_info_new(ctx, scl_context_label(ctx), scl_glm_bytes(glm), 0);
}
