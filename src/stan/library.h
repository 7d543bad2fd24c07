/* The functions of the Stan functions reference (functions.def): their names, and which signature
 * fits a call. */
#ifndef SCL_STAN_LIBRARY_H
#define SCL_STAN_LIBRARY_H

#include "stan/reader.h"

typedef enum {
  SCL_STAN_ROW_FUNCTION = 0,
  SCL_STAN_ROW_DISTRIBUTION,
  SCL_STAN_ROW_HIGHER
} scl_stan_row_kind;

/* A row of functions.def. */
typedef struct {
  scl_stan_row_kind kind;
  const char *names;
  const char *result;    /* functions: all signatures; distributions: the variate */
  const char *arguments; /* not of functions */
  const char *more;      /* distributions: kinds; higher: optional arguments */
  const char *other;     /* distributions: signatures of _rng; higher: the function's result */
  const char *inner;     /* higher: the function's arguments */
  bool rest;
} scl_stan_row;

/* A name's rows, in their order. */
typedef struct scl_stan_entry {
  const struct scl_stan_entry *next;
  const scl_stan_row *row;
} scl_stan_entry;

/* Suffixes of names: the density and other functions of a distribution. */
typedef enum {
  SCL_STAN_PLAIN = 0,
  SCL_STAN_END_LPDF,
  SCL_STAN_END_LPMF,
  SCL_STAN_END_LUPDF,
  SCL_STAN_END_LUPMF,
  SCL_STAN_END_CDF,
  SCL_STAN_END_LCDF,
  SCL_STAN_END_LCCDF,
  SCL_STAN_END_RNG,
  SCL_STAN_END_LP,
  SCL_STAN_END_JACOBIAN,
  SCL_STAN_ENDS
} scl_stan_end;

/* "_lpdf" and so on. */
extern const char *const scl_stan_ends[SCL_STAN_ENDS];
scl_stan_end scl_stan_end_of(const scl_stan_name *name);

/* Makes the library's names known; before the first call. */
scl_status scl_stan_add_library(scl_stan_program *program);

/* The arguments of a call that are to fit. The rest is set if nothing does. */
typedef struct {
  const scl_stan_type *const *type;
  unsigned count;
  unsigned wrong;       /* the first one that does not fit the signature which fits the most */
  unsigned least, most; /* arguments that signatures have */
} scl_stan_arguments;

/* The result of the best signature of a name; NULL in *out if none fits. `data_only` (may be NULL):
 * bit k is set if argument k takes data only. */
scl_status scl_stan_library_result(scl_stan_program *program, const scl_stan_name *name,
                                   scl_stan_arguments *arguments, uint32_t *data_only,
                                   const scl_stan_type **out);
/* The row of a function of functions, or NULL. */
const scl_stan_row *scl_stan_higher(const scl_stan_name *name);
/* Whether a distribution has a function with this suffix. */
bool scl_stan_has_end(const scl_stan_name *distribution, scl_stan_end end);
/* Whether the library has a function of this name. */
bool scl_stan_in_library(scl_stan_program *program, const scl_stan_name *name);

/* ---- types that fit (signature.c) ----------------------------------------------------------- */
/* How many steps of promotion (int to real, real to complex) lead from a type to another; -1: none
 * do. */
int scl_stan_promotion(const scl_stan_type *from, const scl_stan_type *to);
/* One type that both can be promoted to; NULL: there is none. */
scl_status scl_stan_common(scl_stan_program *program, const scl_stan_type *a,
                           const scl_stan_type *b, const scl_stan_type **out);

/* The shape that the arguments of a call have in common. */
typedef struct {
  const scl_stan_type *first, *second; /* arguments 1 and 2 */
  const scl_stan_type *shape;          /* NULL: scalars only */
  const scl_stan_type *array;
  bool any_container;
  unsigned count;
} scl_stan_binding;

/* The cost of a type for the pattern at *pattern, which goes past it; -1 if it does not fit. */
int scl_stan_fit(const char **pattern, const scl_stan_type *type, scl_stan_binding *binding,
                 bool *data_only);
/* The type that a pattern of a result means, going past it. */
scl_status scl_stan_result(scl_stan_program *program, const char **pattern,
                           const scl_stan_binding *binding, const scl_stan_type **out);

/* ---- words that are near (nearest.c) -------------------------------------------------------- */
typedef enum {
  SCL_STAN_NEAR_FUNCTION = 0,
  SCL_STAN_NEAR_DISTRIBUTION,
  SCL_STAN_NEAR_VARIABLE
} scl_stan_near;

/* ": did you mean 'a', 'b'?" with up to three names that are known and near, or "". */
void scl_stan_nearest(const scl_stan_program *program, const scl_stan_name *name,
                      scl_stan_near what, char *text, size_t size);

#endif
