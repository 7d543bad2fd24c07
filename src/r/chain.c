/* .Call entries for chains of cl_sample() over compiled functions (sample/chain.h).
 *
 *   r_chain_make(program, start, options, stream)
 *       program: a compiled function of the unconstrained vector
 *       options: a double vector with the entries below in their order; a chain's `inverse metric`
 *       has an entry for each parameter behind them
 *       stream: list(seed, rest): .Random.seed of "L'Ecuyer-CMRG"; uniform numbers made before
 *   r_chain_run(chain, iterations, seconds): c(stop (scl_chain_stop), iterations done)
 *   r_chain_answer(chain, value, gradient): gradient may be NULL
 *   r_chain_state(chain, all): a list; with draws and figures in columns if `all` */
#include "r/entries.h"
#include "r/pointer.h"
#include "r/program.h"

#include <Rmath.h>
#include <stdlib.h>
#include <string.h>

#include "sample/chain.h"

typedef struct {
  scl_context *ctx;
  scl_chain *chain;
} r_chain;

static scl_context *context_of(const void *object) {
  return ((const r_chain *)object)->ctx;
}

static void release(void *object) {
  r_chain *c = object;
  scl_chain_free(c->chain);
  scl_context_release(c->ctx);
  free(c);
}

static const r_pointer_kind chain_kind = {"statcl_chain", context_of, release};

static scl_status get_chain(SEXP x, r_chain **out) {
  SCL_TRY(r_require_outside());
  *out = r_is_pointer(&chain_kind, x) ? r_pointer_object(x) : NULL;
  if (*out == NULL) return scl_fail(SCL_E_STALE, "the chain was made in another session");
  return scl_context_check((*out)->ctx);
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

static scl_status read_stream(SEXP x, scl_random *out) {
  if (TYPEOF(x) != VECSXP || XLENGTH(x) != 2) return bad_chain();
  SEXP seed = VECTOR_ELT(x, 0), rest = VECTOR_ELT(x, 1);
  if (TYPEOF(seed) != INTSXP || XLENGTH(seed) != 7 || TYPEOF(rest) != REALSXP) return bad_chain();
  return scl_random_begin(out, INTEGER_RO(seed) + 1, REAL_RO(rest), (size_t)XLENGTH(rest),
                          quantile);
}

static scl_status make_chain(scl_program *p, SEXP start, SEXP options, SEXP stream, r_chain **out) {
  const size_t dimension = scl_program_about(p).parameters;
  scl_chain_options o;
  scl_random numbers;
  if (TYPEOF(start) != REALSXP || (size_t)XLENGTH(start) != dimension) return bad_chain();
  SCL_TRY(read_options(options, dimension, &o));
  SCL_TRY(read_stream(stream, &numbers));
  r_chain *c = calloc(1, sizeof *c);
  if (c == NULL) {
    scl_random_end(&numbers);
    return scl_fail_memory(sizeof *c, 0, "a chain");
  }
  c->ctx = scl_context_retain(scl_program_context(p));
  const scl_status status = scl_chain_make(&o, REAL_RO(start), &numbers, &c->chain);
  if (status != SCL_OK) {
    release(c);
    return status;
  }
  *out = c;
  return SCL_OK;
}

/* The handle keeps the program alive. */
SEXP r_chain_make(SEXP program, SEXP start, SEXP options, SEXP stream) {
  SEXP handle = PROTECT(r_pointer_new(&chain_kind, program));
  scl_program *p;
  r_chain *c;
  scl_status status;
  SCL_GO(r_program_get(program, &p));
  SCL_GO(make_chain(p, start, options, stream, &c));
  r_pointer_set(handle, c);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

SEXP r_chain_run(SEXP chain, SEXP iterations, SEXP seconds) {
  SEXP result = PROTECT(Rf_allocVector(INTSXP, 2));
  scl_chain_stop stop = SCL_CHAIN_RUNS;
  scl_program *p;
  r_chain *c;
  scl_status status;
  SCL_GO(get_chain(chain, &c));
  SCL_GO(r_program_get(R_ExternalPtrProtected(chain), &p));
  const scl_target target = scl_target_program(p);
  SCL_GO(scl_chain_run(c->chain, &target, Rf_asInteger(iterations), Rf_asReal(seconds), &stop));
  INTEGER(result)[0] = (int)stop;
  INTEGER(result)[1] = scl_chain_view_of(c->chain).done;
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_chain_answer(SEXP chain, SEXP value, SEXP gradient) {
  r_chain *c;
  scl_program *p;
  scl_status status;
  SCL_GO(get_chain(chain, &c));
  SCL_GO(r_program_get(R_ExternalPtrProtected(chain), &p));
  const bool rejected = gradient == R_NilValue;
  const size_t dimension = scl_program_about(p).parameters;
  if (!rejected && (TYPEOF(gradient) != REALSXP || (size_t)XLENGTH(gradient) != dimension)) {
    SCL_GO(bad_chain());
  }
  SCL_GO(scl_chain_answer(c->chain, Rf_asReal(value), rejected ? NULL : REAL_RO(gradient)));
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
  const char *names[] = {"iteration", "iteration_done", "rejections",     "evaluations",
                         "step_size", "elapsed",        "warmup_seconds", "at",
                         "scale",     "draws",          "figures",        ""};
  r_chain *c;
  scl_program *p;
  scl_status status = get_chain(chain, &c);
  if (status == SCL_OK) status = r_program_get(R_ExternalPtrProtected(chain), &p);
  if (status != SCL_OK) r_throw();
  const scl_chain_view v = scl_chain_view_of(c->chain);
  const size_t dimension = scl_program_about(p).parameters;
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  const int whole[] = {v.iteration, v.done, v.rejections};
  const double numbers[] = {v.evaluations, v.step_size, v.elapsed, v.warmup_seconds};
  for (int k = 0; k < 3; k++) SET_VECTOR_ELT(result, k, Rf_ScalarInteger(whole[k]));
  for (int k = 0; k < 4; k++) SET_VECTOR_ELT(result, 3 + k, Rf_ScalarReal(numbers[k]));
  const double *vectors[] = {v.point, v.scale};
  for (int k = 0; k < 2; k++) {
    SEXP vector = Rf_allocVector(REALSXP, (R_xlen_t)dimension);
    SET_VECTOR_ELT(result, 7 + k, vector);
    memcpy(REAL(vector), vectors[k], dimension * sizeof(double));
  }
  if (Rf_asLogical(all) == 1) {
    SET_VECTOR_ELT(result, 9, columns(v.draws, dimension, v.kept));
    SET_VECTOR_ELT(result, 10, columns(v.figures, SCL_CHAIN_FIGURES, v.done));
  }
  UNPROTECT(1);
  return result;
}
