/* The checker: names, types, and what may stand where. It writes types, places and numbers of
 * functions into the tree. */
#ifndef SCL_STAN_CHECK_H
#define SCL_STAN_CHECK_H

#include "stan/library.h"

/* A variable in scope. No name has two of them at once. */
typedef struct scl_stan_symbol {
  struct scl_stan_symbol *before; /* declared before it */
  scl_stan_name *name;
  const scl_stan_type *type;
  scl_stan_place place;
  bool autodiff;
  uint32_t position;
} scl_stan_symbol;

/* A function of the program, by its definition, or by its declaration if there is none. All are
 * known everywhere. */
typedef struct scl_stan_function {
  struct scl_stan_function *next; /* of the same name */
  const scl_stan_node *node;
  uint32_t number; /* in the block, from 1 */
} scl_stan_function;

typedef struct {
  scl_stan_program *program;
  scl_stan_symbol *scope; /* the last variable */
  scl_stan_place block;
  unsigned level; /* 0: at the top of the block */
  unsigned loops;
  const scl_stan_node *function; /* whose body is checked */
  scl_stan_end end;              /* of its name */
} scl_stan_checker;

/* ---- names (check_scope.c) ------------------------------------------------------------------ */
/* A new variable; SCL_E_STAN if its name is in use. */
scl_status scl_stan_declare(scl_stan_checker *c, scl_stan_name *name, const scl_stan_type *type,
                            scl_stan_place place, bool autodiff, uint32_t position);
/* Ends the scope of all variables after `mark`. */
void scl_stan_leave(scl_stan_checker *c, scl_stan_symbol *mark);
/* Whether values that change with parameters are differentiated here. */
bool scl_stan_differentiates(const scl_stan_checker *c);
/* SCL_E_STAN: the name is no variable here, and why. */
scl_status scl_stan_fail_unknown(const scl_stan_checker *c, const scl_stan_node *variable);
/* SCL_E_STAN: "'x' is ..., not ...". Types are named. */
scl_status scl_stan_fail_type(const scl_stan_checker *c, const scl_stan_node *node,
                              const char *what, const char *wanted);

/* SCL_E_STAN unless an expression is an integer; `what` for the message: "a size". */
scl_status scl_stan_check_integer(const scl_stan_checker *c, const scl_stan_node *node,
                                  const char *what);

/* ---- expressions ---------------------------------------------------------------------------- */
/* Types of an operation whose operands have theirs (check_operator.c). */
scl_status scl_stan_check_operation(scl_stan_checker *c, scl_stan_node *node);
/* The type of `a op b`; NULL: there is none. Also for assignments like "+=". */
scl_status scl_stan_operate(scl_stan_checker *c, scl_stan_operator op, const scl_stan_type *a,
                            const scl_stan_type *b, const scl_stan_type **out);
/* Types of indices, and of parts of tuples (check_index.c). */
scl_status scl_stan_check_index(scl_stan_checker *c, scl_stan_node *node);
scl_status scl_stan_check_part(scl_stan_checker *c, scl_stan_node *node);
/* The function of the program that fits best (check_match.c), NULL if none does; SCL_E_STAN
 * if two fit equally well. */
scl_status scl_stan_best_function(scl_stan_checker *c, const scl_stan_name *name,
                                  const scl_stan_type *const *types, unsigned count,
                                  uint32_t position, const scl_stan_function **out);
/* The name of the program's functions that a call of this name means: f_lpdf for f_lupdf. */
scl_status scl_stan_plain_name(scl_stan_checker *c, scl_stan_name *name, scl_stan_name **out);
/* Calls whose arguments have their types (check_call.c). */
scl_status scl_stan_check_call(scl_stan_checker *c, scl_stan_node *node);
/* SCL_E_STAN if a function of this name cannot be called here. */
scl_status scl_stan_check_place(const scl_stan_checker *c, const scl_stan_name *name,
                                uint32_t position);
/* Functions of functions (check_higher.c). */
scl_status scl_stan_check_higher(scl_stan_checker *c, scl_stan_node *node, const scl_stan_row *row);

/* Any expression, also a function's name or text (check_expression.c). */
scl_status scl_stan_check_expression(scl_stan_checker *c, scl_stan_node *node);
/* One that has a value. */
scl_status scl_stan_check_value(scl_stan_checker *c, scl_stan_node *node);

/* ---- statements ----------------------------------------------------------------------------- */
scl_status scl_stan_check_sample(scl_stan_checker *c, scl_stan_node *node); /* check_sample.c */
scl_status scl_stan_check_declaration(scl_stan_checker *c,
                                      scl_stan_node *node); /* check_declaration.c */
scl_status scl_stan_check_assignment(scl_stan_checker *c, scl_stan_node *node); /* check_assign.c */
scl_status scl_stan_check_statement(scl_stan_checker *c,
                                    scl_stan_node *node); /* check_statement.c */
/* The functions block (check_function.c). */
scl_status scl_stan_check_functions(scl_stan_checker *c, scl_stan_node *list);

#endif
