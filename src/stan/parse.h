/* The parser, by the grammar of the reference manual. Each function begins at the current token,
 * and leaves the one behind what it has read. */
#ifndef SCL_STAN_PARSE_H
#define SCL_STAN_PARSE_H

#include "stan/lexer.h"

/* ---- tokens (parse_expression.c) ------------------------------------------------------------ */
static inline bool scl_stan_looks_at(const scl_stan_program *program, int kind) {
  return program->token.kind == kind;
}
scl_status scl_stan_advance(scl_stan_program *program);
/* Goes past this token if it is there. */
scl_status scl_stan_accept(scl_stan_program *program, int kind, bool *out);
/* Goes past this token; SCL_E_STAN, "expected ';' after the declaration", if it is not there. */
scl_status scl_stan_expect(scl_stan_program *program, int kind, const char *where);
scl_status scl_stan_expect_name(scl_stan_program *program, const char *what, scl_stan_name **out);

/* ---- expressions ---------------------------------------------------------------------------- */
scl_status scl_stan_parse_expression(scl_stan_program *program, scl_stan_node **out);
/* One that ends before comparisons, as bounds do. */
scl_status scl_stan_parse_bound(scl_stan_program *program, scl_stan_node **out);
/* Its beginning: a variable, number, call or the like with its indices; and the rest of one whose
 * beginning is read. */
scl_status scl_stan_parse_beginning(scl_stan_program *program, scl_stan_node **out);
scl_status scl_stan_parse_rest(scl_stan_program *program, scl_stan_node *beginning,
                               scl_stan_node **out);
/* Expressions and commas up to `close`, which is read too; they are pushed. */
scl_status scl_stan_parse_list(scl_stan_program *program, int close, const char *where);

/* ---- types and declarations (parse_type.c) -------------------------------------------------- */
bool scl_stan_begins_type(int token);
scl_status scl_stan_parse_plain_type(scl_stan_program *program, const scl_stan_type **out);
/* A declaration with its ';'; its variables are pushed, each as a node. */
scl_status scl_stan_parse_declaration(scl_stan_program *program);

/* ---- statements (parse_statement.c) --------------------------------------------------------- */
/* Statements and declarations up to '}', which is read too: a node of this kind. */
scl_status scl_stan_parse_body(scl_stan_program *program, scl_stan_kind kind, uint32_t position,
                               scl_stan_node **out);

/* ---- the program (parse_program.c) ---------------------------------------------------------- */
scl_status scl_stan_parse(scl_stan_program *program);

#endif
