/* Element lists of traced values that a loop fills (r/tape.h), as an ALTREP class: a vector with
 * one element replaced, without a copy. The newest version has the numbers. An older one, which is
 * mostly garbage by then, has the next version and the element that differs there; it gets numbers
 * of its own once it is read. To R code all are ordinary integer vectors.
 *
 * First data field: the next version, or NULL. Second: the numbers, or, if there is a next version,
 * the place that differs, the element there, and the length. */
#include <string.h>

#include "r/tape.h"

#include <R_ext/Altrep.h>
#include <R_ext/Rdynload.h>

enum { AT_PLACE, ITS_ELEMENT, ITS_LENGTH, ENTRIES };
enum { SHORT = 64 }; /* up to so many elements a copy costs less */

static R_altrep_class_t version_class;

static bool is_newest(SEXP x) {
  return R_altrep_data1(x) == R_NilValue;
}

/* The numbers, which an older version takes from the newest one and the differences in between. */
static SEXP numbers_of(SEXP x) {
  R_xlen_t steps = 0;
  SEXP newest = x;
  for (; !is_newest(newest); newest = R_altrep_data1(newest)) steps++;
  if (steps == 0) return R_altrep_data2(x);
  SEXP numbers = PROTECT(Rf_duplicate(R_altrep_data2(newest)));
  SEXP differences = PROTECT(Rf_allocVector(INTSXP, 2 * steps));
  int *from = INTEGER(differences), *to = INTEGER(numbers);
  for (SEXP v = x; !is_newest(v); v = R_altrep_data1(v)) {
    memcpy(from, INTEGER_RO(R_altrep_data2(v)), 2 * sizeof *from);
    from += 2;
  }
  for (; steps > 0; steps--) {
    from -= 2;
    to[from[AT_PLACE]] = from[ITS_ELEMENT];
  }
  R_set_altrep_data2(x, numbers);
  R_set_altrep_data1(x, R_NilValue);
  UNPROTECT(2);
  return numbers;
}

static R_xlen_t version_length(SEXP x) {
  SEXP own = R_altrep_data2(x);
  return is_newest(x) ? XLENGTH(own) : INTEGER_RO(own)[ITS_LENGTH];
}

static void *version_data(SEXP x, Rboolean writable) {
  (void)writable;
  return INTEGER(numbers_of(x));
}

static const void *version_data_or_null(SEXP x) {
  return is_newest(x) ? INTEGER_RO(R_altrep_data2(x)) : NULL;
}

void r_tape_version_init(DllInfo *dll) {
  version_class = R_make_altinteger_class("version", "statcl", dll);
  R_set_altrep_Length_method(version_class, version_length);
  R_set_altvec_Dataptr_method(version_class, version_data);
  R_set_altvec_Dataptr_or_null_method(version_class, version_data_or_null);
}

SEXP r_tape_version(SEXP x, int place, int element) {
  const R_xlen_t n = XLENGTH(x);
  const bool is_short = n <= SHORT, is_version = !is_short && R_altrep_inherits(x, version_class);
  SEXP numbers = PROTECT(is_version ? numbers_of(x) : Rf_duplicate(x)), result = numbers;
  if (!is_short) {
    result = PROTECT(R_new_altrep(version_class, R_NilValue, numbers));
    if (is_version) {
      SEXP own = PROTECT(Rf_allocVector(INTSXP, ENTRIES));
      const int differs[] = {place, INTEGER_RO(numbers)[place], (int)n};
      memcpy(INTEGER(own), differs, sizeof differs);
      R_set_altrep_data2(x, own);
      R_set_altrep_data1(x, result);
      UNPROTECT(1);
    }
    UNPROTECT(1);
  }
  INTEGER(numbers)[place] = element;
  UNPROTECT(1);
  return result;
}
