/* Writing the source of a plan; between scl_expr_writer.c and scl_expr_source.c. */
#ifndef SCL_EXPR_WRITER_H
#define SCL_EXPR_WRITER_H

#include "scl_expr_graph.h"

typedef struct {
  char *text;
  size_t used, room;
  bool failed; /* no memory */
  const scl_plan *p;
} scl_writer;

/* Appends. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void
scl_put(scl_writer *w, const char *format, ...);

/* Functions of the operations of the plan, and of its reductions. */
void scl_put_op_functions(scl_writer *w);
void scl_put_combine_functions(scl_writer *w);
/* The operation of a step, as an expression. */
void scl_put_apply(scl_writer *w, const scl_step *step);
/* Statements: total = combine of output k (total, number); or the same for pairs with places. */
void scl_put_combine(scl_writer *w, const char *indent, int k, const char *total,
                     const char *number, const char *at, const char *number_at);
/* The identity of a reduction of the table. */
const char *scl_identity_text(const scl_output *o);

#endif
