/* .Call entries for the chains of cl_sample() (sample/chain.h).
 *
 *   r_chain_make(start, options, seed)
 *       start: the unconstrained vector
 *       options: a double vector with the entries below in their order; a chain's `inverse metric`
 *       has an entry for each parameter behind them
 *       seed: .Random.seed of "L'Ecuyer-CMRG"
 *   r_chain_place(chain, centre, jitter): the new start, near the centre
 *   r_chain_step(chain, value, gradient, iterations): takes the result at the chain's point, whose
 *       gradient may be NULL; the next point, or scl_chain_stop if the chain stops or so many
 *       iterations are done
 *   r_chain_clock(chain, runs)
 *   r_chains_run(chains, program, vectors, goals, seconds): scl_chain_stop of each of a list of
 *       chains (scl_chains_run()); the program is a compiled function of the unconstrained vector
 *   r_chain_state(chain, all): a list; with draws and figures in columns if `all` */
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
  if (TYPEOF(x) != REALSXP || (size_t)XLENGTH(x) != OPTIONS + dimension) return bad_chain();
  const double *o = REAL_RO(x);
  *out = (scl_chain_options){.dimension = dimension,
                             .warmup = (int)o[WARMUP],
                             .iter = (int)o[ITER],
                             .static_steps = o[STATIC] != 0.0,
                             .leapfrogs = (int)o[LEAPFROGS],
                             .max_depth = (int)o[MAX_DEPTH],
                             .adapts_metric = o[ADAPTS_METRIC] != 0.0,
                             .adapt_delta = o[ADAPT_DELTA],
                             .step_size = o[STEP_SIZE],
                             .inverse_metric = o + OPTIONS,
                             .save_warmup = o[SAVE_WARMUP] != 0.0,
                             .reject_nan = o[REJECT_NAN] != 0.0};
  return SCL_OK;
}

static scl_status make_chain(SEXP start, SEXP options, SEXP seed, scl_chain **out) {
  scl_chain_options o;
  scl_random numbers;
  if (TYPEOF(start) != REALSXP || TYPEOF(seed) != INTSXP || XLENGTH(seed) != 7) return bad_chain();
  SCL_TRY(read_options(options, (size_t)XLENGTH(start), &o));
  SCL_TRY(scl_random_begin(&numbers, INTEGER_RO(seed) + 1, quantile));
  return scl_chain_make(&o, REAL_RO(start), &numbers, out);
}

SEXP r_chain_make(SEXP start, SEXP options, SEXP seed) {
  SEXP handle = PROTECT(r_pointer_new(&chain_kind, R_NilValue));
  scl_chain *c;
  scl_status status;
  SCL_GO(make_chain(start, options, seed, &c));
  r_pointer_set(handle, c);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

static scl_status require_vector(const scl_chain *c, SEXP x) {
  const bool fits = TYPEOF(x) == REALSXP && (size_t)XLENGTH(x) == scl_chain_view_of(c).dimension;
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

static scl_status get_chains(SEXP x, const scl_program *p, scl_chain **chain) {
  const size_t dimension = scl_program_about(p).parameters;
  for (R_xlen_t k = 0; k < XLENGTH(x); k++) {
    SCL_TRY(get_chain(VECTOR_ELT(x, k), &chain[k]));
    if (scl_chain_view_of(chain[k]).dimension != dimension) return bad_chain();
  }
  return SCL_OK;
}

SEXP r_chains_run(SEXP chains, SEXP program, SEXP vectors, SEXP goals, SEXP seconds) {
  const R_xlen_t count = TYPEOF(chains) == VECSXP ? XLENGTH(chains) : 0;
  SEXP result = PROTECT(Rf_allocVector(INTSXP, count));
  scl_chain **chain = (scl_chain **)R_alloc((size_t)count + 1, sizeof *chain);
  scl_chain_stop *stop = (scl_chain_stop *)R_alloc((size_t)count + 1, sizeof *stop);
  scl_program *p;
  scl_status status;
  SCL_GO(r_program_get(program, &p));
  if (TYPEOF(goals) != INTSXP || XLENGTH(goals) != count) SCL_GO(bad_chain());
  SCL_GO(get_chains(chains, p, chain));
  SCL_GO(scl_chains_run(chain, (int)count, p, (size_t)Rf_asInteger(vectors), INTEGER_RO(goals),
                        Rf_asReal(seconds), stop));
  for (R_xlen_t k = 0; k < count; k++) INTEGER(result)[k] = (int)stop[k];
done:
  UNPROTECT(1);
  return r_return(status, result);
}

static SEXP columns(const double *from, size_t rows, int count) {
  SEXP result = Rf_allocMatrix(REALSXP, (int)rows, count);
  if (XLENGTH(result) > 0) memcpy(REAL(result), from, (size_t)XLENGTH(result) * sizeof *from);
  return result;
}

/* Allocates while it reads the chain, which holds nothing that an error would lose. */
SEXP r_chain_state(SEXP chain, SEXP all) {
  const char *names[] = {"iteration", "iteration_done", "rejections",     "evaluations",
                         "step_size", "elapsed",        "warmup_seconds", "at",
                         "scale",     "draws",          "figures",        ""};
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
  if (Rf_asLogical(all) == 1) {
    SET_VECTOR_ELT(result, 9, columns(v.draws, v.dimension, v.kept));
    SET_VECTOR_ELT(result, 10, columns(v.figures, SCL_CHAIN_FIGURES, v.done));
  }
  UNPROTECT(1);
  return result;
}
