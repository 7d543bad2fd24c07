/* r_trace_formula(tape, code, env): the value of code of operators, x[i], x[i, j], a few functions
 * and densities in an environment, as R would record it operation by operation. NULL, with nothing
 * recorded, if there is anything but plain numbers and traced values of the usual form, a density
 * was not called in this form before, or the value is not traced (R/trace-loops.R). */
#include <Rmath.h>
#include <math.h>
#include <string.h>

#include "r/entries.h"
#include "r/glue.h"
#include "r/tape.h"

enum { MOST_LEAVES = 32 };

/* Variables and constants are looked up first, since that may force a promise, which records too.
 */
typedef struct {
  r_tape tape;
  SEXP leaf[MOST_LEAVES]; /* in their order in the code */
  int leaves, next;
} formula;

/* Protects the leaves. */
static bool collect(formula *f, SEXP code, SEXP env) {
  if (TYPEOF(code) == LANGSXP) {
    for (SEXP a = CDR(code); a != R_NilValue; a = CDR(a)) {
      if (!collect(f, CAR(a), env)) return false;
    }
    return true;
  }
  if (f->leaves == MOST_LEAVES) return false;
  SEXP leaf = TYPEOF(code) == SYMSXP ? R_getVarEx(code, env, TRUE, R_NilValue) : code;
  f->leaf[f->leaves++] = PROTECT(leaf);
  return true;
}

static bool number(double x, r_traced *o) {
  *o = (r_traced){0, 1, true, x, R_NilValue, R_NilValue, R_NilValue, false};
  return true;
}

static bool node(const formula *f, int id, r_traced *o) {
  if (id == 0) return false;
  const int n = r_tape_size(&f->tape, id);
  *o = (r_traced){id, n, false, 0.0, R_NilValue, R_NilValue, R_NilValue, false};
  return true;
}

/* Beyond the range of integers their results are missing in R. */
static bool plain(char sign, double x, double y, r_traced *o) {
  const double value = sign == '+'   ? x + y
                       : sign == '-' ? x - y
                       : sign == '*' ? x * y
                       : sign == '/' ? x / y
                       : y == 2.0    ? x * x
                                     : R_pow(x, y);
  return fabs(value) <= INT_MAX && number(value, o);
}

static bool value_of(formula *f, SEXP code, r_traced *o);

/* The element of a plain vector or matrix without names. */
static bool plain_element(SEXP x, int count, const double *at, r_traced *o) {
  if ((TYPEOF(x) != REALSXP && TYPEOF(x) != INTSXP) || Rf_isObject(x) || XLENGTH(x) >= INT_MAX) {
    return false;
  }
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  if (ANY_ATTRIB(x) && (dim == R_NilValue || Rf_getAttrib(x, R_DimNamesSymbol) != R_NilValue)) {
    return false;
  }
  const r_traced like = {.n = (int)XLENGTH(x), .dim = dim};
  const int place = r_tape_place(&like, count, at);
  if (place < 0) return false;
  if (TYPEOF(x) == REALSXP) return number(REAL_ELT(x, place), o);
  const int element = INTEGER_ELT(x, place);
  number(element == NA_INTEGER ? NA_REAL : element, o);
  o->integer = true;
  return true;
}

static bool element(formula *f, SEXP args, r_traced *o) {
  SEXP x = f->leaf[f->next];
  double at[2];
  int count = 0;
  r_traced of, index;
  if (TYPEOF(CAR(args)) != SYMSXP) return false;
  f->next++;
  for (SEXP a = CDR(args); a != R_NilValue; a = CDR(a)) {
    if (count == 2 || !value_of(f, CAR(a), &index) || !index.number) return false;
    at[count++] = index.value;
  }
  if (count == 0) return false;
  if (TYPEOF(x) != ENVSXP) return plain_element(x, count, at, o);
  if (!r_tape_traced(x, &f->tape, &of)) return false;
  const int place = r_tape_place(&of, count, at);
  return place >= 0 && node(f, r_tape_element(&f->tape, &of, place), o);
}

static bool one_operand(formula *f, const char *name, SEXP code, r_traced *o) {
  r_traced x;
  if (!value_of(f, code, &x)) return false;
  if (name[0] == '(') *o = x;
  if (name[0] == '(') return true;
  if (name[0] == '-' && x.number) return number(-x.value, o);
  if (strchr("+*/^", name[0]) != NULL) return false;
  if (x.number) {
    const double value = name[0] == 'e'   ? exp(x.value)
                         : name[0] == 'l' ? log(x.value)
                                          : sqrt(x.value);
    return !isnan(value) && number(value, o);
  }
  if (name[0] == '-') name = "neg";
  return node(f, r_tape_apply(&f->tape, name, 1, &x.id, x.n), o);
}

/* An argument of a density, as R would have it. */
static bool argument(formula *f, SEXP code, SEXP values, int k) {
  r_traced o;
  if (TYPEOF(code) != LANGSXP) {
    SET_VECTOR_ELT(values, k, f->leaf[f->next++]);
    return true;
  }
  if (!value_of(f, code, &o) || (o.integer && isnan(o.value))) return false;
  SET_VECTOR_ELT(values, k,
                 !o.number   ? r_tape_value(&f->tape, o.id, o.n)
                 : o.integer ? Rf_ScalarInteger((int)o.value)
                             : Rf_ScalarReal(o.value));
  return true;
}

/* The names of arguments, as list() makes them. */
static void name_values(SEXP args, SEXP values) {
  SEXP names = PROTECT(Rf_allocVector(STRSXP, XLENGTH(values)));
  bool named = false;
  int k = 0;
  for (SEXP a = args; a != R_NilValue; a = CDR(a)) {
    named = named || TAG(a) != R_NilValue;
    SET_STRING_ELT(names, k++, TAG(a) == R_NilValue ? R_BlankString : PRINTNAME(TAG(a)));
  }
  if (named) Rf_setAttrib(values, R_NamesSymbol, names);
  UNPROTECT(1);
}

/* A density, from the nodes of an earlier call. */
static bool density(formula *f, SEXP code, r_traced *o) {
  SEXP env = f->tape.env, values = PROTECT(Rf_allocVector(VECSXP, Rf_length(CDR(code))));
  bool known = true;
  int k = 0;
  for (SEXP a = CDR(code); a != R_NilValue && known; a = CDR(a)) {
    known = argument(f, CAR(a), values, k++);
  }
  if (known) {
    name_values(CDR(code), values);
    SEXP name = PROTECT(Rf_ScalarString(PRINTNAME(CAR(code))));
    SEXP again = PROTECT(r_trace_again(env, name, values));
    known = r_tape_read(env, &f->tape) && again != R_NilValue && r_tape_operand(again, &f->tape, o);
    UNPROTECT(2);
  }
  UNPROTECT(1);
  return known;
}

static bool is_function(const char *name) {
  return strcmp(name, "exp") == 0 || strcmp(name, "log") == 0 || strcmp(name, "sqrt") == 0;
}

static bool value_of(formula *f, SEXP code, r_traced *o) {
  if (TYPEOF(code) != LANGSXP) {
    SEXP leaf = f->leaf[f->next++]; /* TRUE as an index is not 1 */
    return TYPEOF(leaf) != LGLSXP && r_tape_operand(leaf, &f->tape, o);
  }
  const char *name = CHAR(PRINTNAME(CAR(code)));
  r_traced x, y;
  if (name[0] == '[') return element(f, CDR(code), o);
  if (strchr("+-*/^(", name[0]) == NULL && !is_function(name)) return density(f, code, o);
  if (CDDR(code) == R_NilValue) return one_operand(f, name, CADR(code), o);
  if (!value_of(f, CADR(code), &x) || !value_of(f, CADDR(code), &y)) return false;
  if (x.number && y.number) return plain(name[0], x.value, y.value, o);
  return node(f, r_tape_binary(&f->tape, name, &x, &y, R_NilValue, R_NilValue), o);
}

SEXP r_trace_formula(SEXP env, SEXP code, SEXP home) {
  formula f = {.leaves = 0};
  r_traced value;
  SEXP result = R_NilValue;
  if (collect(&f, code, home) && r_tape_read(env, &f.tape)) {
    const int before = f.tape.count;
    if (value_of(&f, code, &value) && !value.number) {
      result = r_tape_value(&f.tape, value.id, value.n);
    } else {
      r_tape_cut(&f.tape, before);
    }
  }
  UNPROTECT(f.leaves);
  return result;
}
