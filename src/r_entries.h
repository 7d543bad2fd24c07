/* Prototypes of the .Call entries, from r_entries.def. */
#ifndef R_ENTRIES_H
#define R_ENTRIES_H

#define R_NO_REMAP
#include <Rinternals.h>

#define R_PARAMETERS_0 void
#define R_PARAMETERS_1 SEXP
#define R_PARAMETERS_2 SEXP, SEXP
#define R_PARAMETERS_3 SEXP, SEXP, SEXP
#define R_PARAMETERS_4 SEXP, SEXP, SEXP, SEXP
#define R_PARAMETERS_5 SEXP, SEXP, SEXP, SEXP, SEXP
#define R_PARAMETERS_6 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define R_PARAMETERS_7 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define R_PARAMETERS_8 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define R_PARAMETERS_9 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define R_PARAMETERS_10 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP

#define R_ENTRY(name, arguments) SEXP name(R_PARAMETERS_##arguments);
#include "r_entries.def"
#undef R_ENTRY

#endif
