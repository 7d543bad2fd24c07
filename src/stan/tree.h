/* The tree of a Stan program: types, names and nodes. All live in the program's arena.
 *
 * Types and names are unique in a program: equal ones are the same pointer. */
#ifndef SCL_STAN_TREE_H
#define SCL_STAN_TREE_H

#include <stdbool.h>

#include "base/status.h"

typedef enum {
  SCL_STAN_INT = 0,
  SCL_STAN_REAL,
  SCL_STAN_COMPLEX,
  SCL_STAN_VECTOR,
  SCL_STAN_ROW,
  SCL_STAN_MATRIX,
  SCL_STAN_CVECTOR, /* complex ones: the real one + 3 */
  SCL_STAN_CROW,
  SCL_STAN_CMATRIX,
  SCL_STAN_TUPLE,
  SCL_STAN_VOID,
  SCL_STAN_FUNCTION, /* the name of a function that is an argument */
  SCL_STAN_STRING,   /* arguments of print() and the like */
  SCL_STAN_BASES
} scl_stan_base;

/* As the tree for R has it: "int", "row_vector", ... */
extern const char *const scl_stan_base_names[SCL_STAN_BASES];

enum { SCL_STAN_DIMENSIONS = 64 }; /* most dimensions of an array */

typedef struct scl_stan_type {
  const struct scl_stan_type *next; /* with the same hash */
  uint8_t base, depth;              /* depth: dimensions of the array */
  uint16_t parts;                   /* of a tuple */
  uint32_t id;                      /* 0, 1, ... in the order of their making */
  const struct scl_stan_type *part[];
} scl_stan_type;

struct scl_stan_symbol;   /* check.h */
struct scl_stan_function; /* check.h */
struct scl_stan_entry;    /* library.h */

typedef struct scl_stan_name {
  struct scl_stan_name *next; /* with the same hash */
  struct scl_stan_symbol *symbol;
  struct scl_stan_function *functions; /* those of the program */
  const struct scl_stan_entry *library;
  uint32_t hash, length;
  int keyword; /* its token, or 0 */
  char text[];
} scl_stan_name;

#define SCL_STAN_NODE(kind, name, fields) SCL_STAN_##kind##_NODE,
typedef enum {
#include "stan/nodes.def"
  SCL_STAN_KINDS
} scl_stan_kind;
#undef SCL_STAN_NODE

/* The name of a kind for R, and its fields (nodes.def). */
extern const char *const scl_stan_kind_names[SCL_STAN_KINDS];
extern const char *const scl_stan_kind_fields[SCL_STAN_KINDS];

#define SCL_STAN_OPERATOR(id, text, level, rule) SCL_STAN_OP_##id,
typedef enum {
  SCL_STAN_OP_NONE,
#include "stan/operators.def"
  SCL_STAN_OPERATORS
} scl_stan_operator;
#undef SCL_STAN_OPERATOR

extern const char *const scl_stan_operator_names[SCL_STAN_OPERATORS];

#define SCL_STAN_CONSTRAINT(id, name) SCL_STAN_C_##id,
typedef enum {
#include "stan/constraints.def"
  SCL_STAN_CONSTRAINTS
} scl_stan_constraint;
#undef SCL_STAN_CONSTRAINT

extern const char *const scl_stan_constraint_names[SCL_STAN_CONSTRAINTS];

/* Where a variable is declared. The blocks of a program come first, in their order. */
typedef enum {
  SCL_STAN_FUNCTIONS = 0,
  SCL_STAN_DATA,
  SCL_STAN_TRANSFORMED_DATA,
  SCL_STAN_PARAMETERS,
  SCL_STAN_TRANSFORMED_PARAMETERS,
  SCL_STAN_MODEL,
  SCL_STAN_GENERATED,
  SCL_STAN_BLOCKS,
  SCL_STAN_LOCAL = SCL_STAN_BLOCKS,
  SCL_STAN_LOOP,
  SCL_STAN_ARGUMENT,
  SCL_STAN_FUNCTION_NAME,
  SCL_STAN_PLACES
} scl_stan_place;

/* "data", "transformed_data", ..., "local", "loop", "argument", "function". */
extern const char *const scl_stan_place_names[SCL_STAN_PLACES];

/* A node's flags. */
enum {
  SCL_STAN_BAR = 1,       /* a call with '|' after its first argument */
  SCL_STAN_TRUNCATED = 2, /* a sampling statement with T[,] */
  SCL_STAN_ONLY_DATA = 4, /* an argument of a function that takes data only */
  SCL_STAN_AUTODIFF = 8,  /* an expression that may depend on parameters */
  SCL_STAN_CHECKED = 16   /* already seen by the checker */
};

typedef struct scl_stan_node {
  uint8_t kind, op; /* op: an operator, a constraint, or SCL_STAN_LPDF_* of a sampling statement */
  uint8_t place, flags;
  uint32_t position; /* in the source */
  uint32_t depth;    /* 1 + that of its deepest child, without those along a chain */
  uint32_t user;     /* of a call: the number of the program's function, from 1; 0: the library's */
  uint32_t count;    /* children */
  union {
    scl_stan_name *name; /* or text of a string */
    double value;
  };
  const scl_stan_type *type;     /* of expressions, declarations, functions and arguments */
  struct scl_stan_node *child[]; /* as nodes.def has them; NULL: left out */
} scl_stan_node;

enum { SCL_STAN_LPDF = 0, SCL_STAN_LPMF };

/* The child along which chains of any length grow, of the parent's kind: the left operand of a
 * binary operator, the last choice of '?', what follows 'else'. NULL: the chain ends. Code that
 * walks trees follows it in a loop. */
static inline scl_stan_node *scl_stan_chained(const scl_stan_node *node) {
  const bool operation = node->kind == SCL_STAN_OPERATION_NODE;
  if (node->count != (operation ? 2 : 3)) return NULL;
  if (!operation && node->kind != SCL_STAN_CONDITIONAL_NODE && node->kind != SCL_STAN_IF_NODE) {
    return NULL;
  }
  scl_stan_node *child = node->child[operation ? 0 : 2];
  return child != NULL && child->kind == node->kind && child->count == node->count ? child : NULL;
}

/* The depth of a node that got another child. */
static inline void scl_stan_deepen(scl_stan_node *node, uint32_t depth) {
  if (node->depth < depth) node->depth = depth;
}

static inline bool scl_stan_is_scalar(const scl_stan_type *type) {
  return type->depth == 0 && type->base <= SCL_STAN_COMPLEX;
}

static inline bool scl_stan_is_int(const scl_stan_type *type) {
  return type->depth == 0 && type->base == SCL_STAN_INT;
}

#endif
