/* .Call entries for the chains of cl_sample() (sample/chain.h).
 *
 *   r_chain_make(start, options, seed, factor)
 *       start: the unconstrained vector
 *       options: a double vector with the entries below in their order; behind them the inverse
 *       metric: an entry for each parameter, or the matrix if it is dense; of low rank the
 *       eigenvalues and the eigenvectors behind the diagonal
 *       seed: .Random.seed of "L'Ecuyer-CMRG"
 *       factor: of the precision of a sparse metric (r/sparse.c), or NULL
 *   r_chain_place(chain, centre, jitter): the new start, near the centre
 *   r_chain_step(chain, value, gradient, iterations): takes the result at the chain's point, whose
 *       gradient may be NULL; the next point, or scl_chain_stop if the chain stops or has done this
 *       many iterations
 *   r_chain_clock(chain, runs)
 *   r_chains_run(chains, targets, counts, vectors, goals, seconds): scl_chain_stop of each of a
 *       list of chains: the first counts[1] of them over the first target, vectors[1] at once, and
 *       so on (scl_chain_groups_run()); get_target() describes a target
 *   r_chains_pool(chains): chains that wait for each other continue (scl_chains_pool())
 *   r_target_run(target, x): value and gradient
 *   r_chain_state(chain, all): a list; with draws and figures in columns if `all`
 *   r_chain_save(chain): its image, a raw vector
 *   r_chain_restore(chain, image) */
#include "r/entries.h"
#include "r/pointer.h"
#include "r/program.h"

#include <Rmath.h>
#include <string.h>

#include "sample/chain.h"

/* Its memory is that of the host. */
static scl_context *context_of(const void *object) {
  (void)object;
  return scl_context_host();
}

static void release(void *object) {
  scl_chain_free(object);
}

static const r_pointer_kind chain_kind = {"statcl_chain", context_of, release};

static scl_status get_chain(SEXP x, scl_chain **out) {
  SCL_TRY(r_require_outside());
  *out = r_is_pointer(&chain_kind, x) ? r_pointer_object(x) : NULL;
  return *out != NULL ? SCL_OK : scl_fail(SCL_E_STALE, "the chain was made in another session");
}

static double quantile(double p) {
  return qnorm5(p, 0.0, 1.0, 1, 0);
}

enum {
  WARMUP,
  ITER,
  STATIC,
  LEAPFROGS,
  MAX_DEPTH,
  ADAPTS_METRIC,
  DENSE,
  RANK,
  CHOOSES,
  POOLS,
  ADAPT_DELTA,
  STEP_SIZE,
  SAVE_WARMUP,
  REJECT_NAN,
  OPTIONS
};

static scl_status bad_chain(void) {
  return scl_fail_argument("control", "internal: these are no options of a chain");
}

static scl_status read_options(SEXP x, size_t dimension, scl_chain_options *out) {
  if (TYPEOF(x) != REALSXP || XLENGTH(x) < OPTIONS) return bad_chain();
  const double *o = REAL_RO(x);
  const size_t numbers = o[DENSE] != 0.0 ? dimension * dimension : dimension;
  const size_t further = (size_t)XLENGTH(x) - OPTIONS - numbers, rank = (size_t)o[RANK];
  const size_t directions = further / (dimension + 1);
  const bool fits = (size_t)XLENGTH(x) >= OPTIONS + numbers && directions <= rank &&
                    directions * (dimension + 1) == further;
  if (!fits) return bad_chain();
  *out = (scl_chain_options){.dimension = dimension,
                             .warmup = (int)o[WARMUP],
                             .iter = (int)o[ITER],
                             .static_steps = o[STATIC] != 0.0,
                             .leapfrogs = (int)o[LEAPFROGS],
                             .max_depth = (int)o[MAX_DEPTH],
                             .adapts_metric = o[ADAPTS_METRIC] != 0.0,
                             .dense = o[DENSE] != 0.0,
                             .rank = rank,
                             .chooses = o[CHOOSES] != 0.0,
                             .pools = o[POOLS] != 0.0,
                             .adapt_delta = o[ADAPT_DELTA],
                             .step_size = o[STEP_SIZE],
                             .inverse_metric = o + OPTIONS,
                             .directions = directions,
                             .save_warmup = o[SAVE_WARMUP] != 0.0,
                             .reject_nan = o[REJECT_NAN] != 0.0};
  return SCL_OK;
}

static scl_status make_chain(SEXP start, SEXP options, SEXP seed, SEXP factor, scl_chain **out) {
  scl_chain_options o;
  scl_random numbers;
  if (TYPEOF(start) != REALSXP || TYPEOF(seed) != INTSXP || XLENGTH(seed) != 7) return bad_chain();
  SCL_TRY(read_options(options, (size_t)XLENGTH(start), &o));
  if (factor != R_NilValue) {
    o.sparse = r_sparse_factor_of(factor);
    if (o.sparse == NULL || scl_sparse_factor_order(o.sparse) != o.dimension) return bad_chain();
  }
  SCL_TRY(scl_random_begin(&numbers, INTEGER_RO(seed) + 1, quantile));
  return scl_chain_make(&o, REAL_RO(start), &numbers, out);
}

SEXP r_chain_make(SEXP start, SEXP options, SEXP seed, SEXP factor) {
  SEXP handle = PROTECT(r_pointer_new(&chain_kind, factor)); /* which the chain borrows */
  scl_chain *c;
  scl_status status;
  SCL_GO(make_chain(start, options, seed, factor, &c));
  r_pointer_set(handle, c);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

static scl_status require_vector(const scl_chain *c, SEXP x) {
  const bool fits = r_is_double(x, scl_chain_view_of(c).dimension);
  return fits ? SCL_OK : bad_chain();
}

static void read_point(const scl_chain *c, SEXP to) {
  const scl_chain_view v = scl_chain_view_of(c);
  memcpy(REAL(to), v.point, v.dimension * sizeof(double));
}

SEXP r_chain_place(SEXP chain, SEXP centre, SEXP jitter) {
  SEXP point = PROTECT(Rf_allocVector(REALSXP, XLENGTH(centre)));
  scl_chain *c;
  scl_status status;
  SCL_GO(get_chain(chain, &c));
  SCL_GO(require_vector(c, centre));
  SCL_GO(scl_chain_place(c, REAL_RO(centre), Rf_asReal(jitter)));
  read_point(c, point);
done:
  UNPROTECT(1);
  return r_return(status, point);
}

SEXP r_chain_clock(SEXP chain, SEXP runs) {
  scl_chain *c;
  const scl_status status = get_chain(chain, &c);
  if (status == SCL_OK) scl_chain_clock(c, Rf_asLogical(runs) == 1);
  return r_return(status, R_NilValue);
}

SEXP r_chain_step(SEXP chain, SEXP value, SEXP gradient, SEXP iterations) {
  const bool rejected = gradient == R_NilValue;
  scl_chain *c;
  scl_status status;
  scl_chain_stop stop = SCL_CHAIN_RUNS;
  bool pause = false;
  SCL_GO(get_chain(chain, &c));
  if (!rejected) SCL_GO(require_vector(c, gradient));
  SCL_GO(scl_chain_answer(c, Rf_asReal(value), rejected ? NULL : REAL_RO(gradient), &stop));
  pause = stop != SCL_CHAIN_RUNS || scl_chain_view_of(c).done >= Rf_asInteger(iterations);
done:
  if (status != SCL_OK || pause) return r_return(status, Rf_ScalarInteger((int)stop));
  SEXP point = Rf_allocVector(REALSXP, (R_xlen_t)scl_chain_view_of(c).dimension);
  read_point(c, point);
  return point;
}

typedef struct {
  scl_target target;
  scl_program *program;
  scl_likelihood_target likelihood;
} r_target;

/* `at` of a likelihood: dimension, place and count of alpha, beta and the auxiliary parameter,
 * whether the vector has its logarithm. */
static scl_status get_likelihood(SEXP handle, SEXP at, SEXP priors, r_target *out) {
  scl_likelihood_target *l = &out->likelihood;
  if (TYPEOF(at) != INTSXP || XLENGTH(at) != 2 + 2 * SCL_TARGET_PARTS) return bad_chain();
  const int *number = INTEGER_RO(at);
  l->glm = r_glm_usable(handle);
  if (l->glm == NULL) return scl_fail(SCL_E_STALE, "the likelihood was made in another session");
  l->program = out->program;
  l->dimension = (size_t)number[0];
  l->priors = r_is_double(priors, 3 * l->dimension) ? REAL_RO(priors) : NULL;
  for (int k = 0; k < SCL_TARGET_PARTS; k++) {
    l->at[k] = (size_t)number[1 + 2 * k];
    l->count[k] = (size_t)number[2 + 2 * k];
    if (l->at[k] + l->count[k] > l->dimension) return bad_chain();
  }
  l->log_aux = number[1 + 2 * SCL_TARGET_PARTS] != 0;
  if (l->program != NULL && scl_program_about(l->program).parameters != l->dimension) {
    return bad_chain();
  }
  out->target = scl_target_likelihood(l);
  out->program = NULL;
  return SCL_OK;
}

/* list(program, likelihood, at, priors): one of the first two may be NULL; the last is that of
 * scl_likelihood_target, or anything else for none. */
static scl_status get_target(SEXP x, r_target *out) {
  if (TYPEOF(x) != VECSXP || XLENGTH(x) < 4) return bad_chain();
  *out = (r_target){.program = NULL};
  if (VECTOR_ELT(x, 0) != R_NilValue) SCL_TRY(r_program_get(VECTOR_ELT(x, 0), &out->program));
  if (VECTOR_ELT(x, 1) != R_NilValue) {
    return get_likelihood(VECTOR_ELT(x, 1), VECTOR_ELT(x, 2), VECTOR_ELT(x, 3), out);
  }
  if (out->program == NULL) return bad_chain();
  out->target = scl_target_program(out->program);
  return SCL_OK;
}

SEXP r_target_run(SEXP target, SEXP x) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, XLENGTH(x) + 1));
  r_target t;
  scl_status status;
  SCL_GO(get_target(target, &t));
  if (!r_is_double(x, t.target.dimension)) SCL_GO(bad_chain());
  SCL_GO(t.target.run(t.target.self, REAL_RO(x), 1, REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}

/* Chains in `group`, those of all groups in the order of the lists. */
static scl_status get_groups(SEXP targets, SEXP counts, SEXP vectors, scl_chain *const *chain,
                             R_xlen_t chains, r_target *t, scl_chain_group *group) {
  const R_xlen_t groups = XLENGTH(targets);
  R_xlen_t first = 0;
  if (TYPEOF(counts) != INTSXP || XLENGTH(counts) != groups || TYPEOF(vectors) != INTSXP ||
      XLENGTH(vectors) != groups)
    return bad_chain();
  for (R_xlen_t g = 0; g < groups; g++) {
    const int count = INTEGER_RO(counts)[g];
    if (count < 1 || count > chains - first) return bad_chain();
    SCL_TRY(get_target(VECTOR_ELT(targets, g), &t[g]));
    for (R_xlen_t k = first; k < first + count; k++) {
      if (scl_chain_view_of(chain[k]).dimension != t[g].target.dimension) return bad_chain();
    }
    group[g].chain = chain + first;
    group[g].count = count;
    group[g].target = &t[g].target;
    group[g].program = t[g].program;
    group[g].vectors = (size_t)INTEGER_RO(vectors)[g];
    first += count;
  }
  return first == chains ? SCL_OK : bad_chain();
}

SEXP r_chains_run(SEXP chains, SEXP targets, SEXP counts, SEXP vectors, SEXP goals, SEXP seconds) {
  const R_xlen_t count = TYPEOF(chains) == VECSXP ? XLENGTH(chains) : 0;
  const R_xlen_t groups = TYPEOF(targets) == VECSXP ? XLENGTH(targets) : 0;
  SEXP result = PROTECT(Rf_allocVector(INTSXP, count));
  scl_chain **chain = (scl_chain **)R_alloc((size_t)count + 1, sizeof *chain);
  scl_chain_stop *stop = (scl_chain_stop *)R_alloc((size_t)count + 1, sizeof *stop);
  scl_chain_group *group = (scl_chain_group *)R_alloc((size_t)groups + 1, sizeof *group);
  r_target *t = (r_target *)R_alloc((size_t)groups + 1, sizeof *t);
  scl_status status;
  for (R_xlen_t k = 0; k < count; k++) SCL_GO(get_chain(VECTOR_ELT(chains, k), &chain[k]));
  SCL_GO(get_groups(targets, counts, vectors, chain, count, t, group));
  if (TYPEOF(goals) != INTSXP || XLENGTH(goals) != count) SCL_GO(bad_chain());
  for (R_xlen_t g = 0; g < groups; g++) {
    group[g].goal = INTEGER_RO(goals) + (group[g].chain - chain);
    group[g].stop = stop + (group[g].chain - chain);
  }
  SCL_GO(scl_chain_groups_run(group, (int)groups, Rf_asReal(seconds)));
  for (R_xlen_t k = 0; k < count; k++) INTEGER(result)[k] = (int)stop[k];
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_chains_pool(SEXP chains) {
  const R_xlen_t count = TYPEOF(chains) == VECSXP ? XLENGTH(chains) : 0;
  scl_chain **chain = (scl_chain **)R_alloc((size_t)count + 1, sizeof *chain);
  scl_status status = SCL_OK;
  for (R_xlen_t k = 0; k < count; k++) SCL_GO(get_chain(VECTOR_ELT(chains, k), &chain[k]));
  SCL_GO(scl_chains_pool(chain, (int)count));
done:
  return r_return(status, R_NilValue);
}

static SEXP columns(const double *from, size_t rows, int count) {
  SEXP result = Rf_allocMatrix(REALSXP, (int)rows, count);
  if (XLENGTH(result) > 0) memcpy(REAL(result), from, (size_t)XLENGTH(result) * sizeof *from);
  return result;
}

/* Allocates while it reads the chain, which holds nothing that an error would lose. */
SEXP r_chain_state(SEXP chain, SEXP all) {
  const char *names[] = {"iteration",      "iteration_done",
                         "rejections",     "evaluations",
                         "step_size",      "elapsed",
                         "warmup_seconds", "at",
                         "scale",          "draws",
                         "figures",        "factor",
                         "waits",          "values",
                         "vectors",        "failures",
                         "lost",           ""};
  scl_chain *c;
  if (get_chain(chain, &c) != SCL_OK) r_throw();
  const scl_chain_view v = scl_chain_view_of(c);
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  const int whole[] = {v.iteration, v.done, v.rejections};
  const double numbers[] = {v.evaluations, v.step_size, v.elapsed, v.warmup_seconds};
  for (int k = 0; k < 3; k++) SET_VECTOR_ELT(result, k, Rf_ScalarInteger(whole[k]));
  for (int k = 0; k < 4; k++) SET_VECTOR_ELT(result, 3 + k, Rf_ScalarReal(numbers[k]));
  const double *vectors[] = {v.point, v.scale};
  for (int k = 0; k < 2; k++) {
    SEXP vector = Rf_allocVector(REALSXP, (R_xlen_t)v.dimension);
    SET_VECTOR_ELT(result, 7 + k, vector);
    memcpy(REAL(vector), vectors[k], v.dimension * sizeof(double));
  }
  SET_VECTOR_ELT(result, 12, Rf_ScalarLogical(v.waits));
  SEXP failures = Rf_allocVector(INTSXP, 3);
  SET_VECTOR_ELT(result, 15, failures);
  INTEGER(failures)[0] = v.warmup_failures;
  INTEGER(failures)[1] = v.failures - v.warmup_failures;
  INTEGER(failures)[2] = v.failed_iterations;
  if (v.lost != NULL) SET_VECTOR_ELT(result, 16, columns(v.lost, v.dimension, 1));
  if (Rf_asLogical(all) == 1) {
    SET_VECTOR_ELT(result, 9, columns(v.draws, v.dimension, v.kept));
    SET_VECTOR_ELT(result, 10, columns(v.figures, SCL_CHAIN_FIGURES, v.done));
    if (v.factor != NULL) {
      SET_VECTOR_ELT(result, 11, columns(v.factor, v.dimension, (int)v.dimension));
    }
    if (v.value != NULL) {
      SET_VECTOR_ELT(result, 13, columns(v.value, (size_t)v.rank, 1));
      SET_VECTOR_ELT(result, 14, columns(v.vector, v.dimension, v.rank));
    }
  }
  UNPROTECT(1);
  return result;
}

SEXP r_chain_save(SEXP chain) {
  scl_chain *c;
  if (get_chain(chain, &c) != SCL_OK) r_throw();
  SEXP image = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)scl_chain_image_size(c)));
  scl_chain_save(c, RAW(image));
  UNPROTECT(1);
  return image;
}

SEXP r_chain_restore(SEXP chain, SEXP image) {
  scl_chain *c;
  scl_status status;
  SCL_GO(get_chain(chain, &c));
  SCL_GO(TYPEOF(image) == RAWSXP ? SCL_OK : bad_chain());
  SCL_GO(scl_chain_restore(c, RAW_RO(image), (size_t)XLENGTH(image)));
done:
  return r_return(status, R_NilValue);
}
