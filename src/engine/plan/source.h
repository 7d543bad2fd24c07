/* Writing the source of a plan; between engine/plan/source.c, engine/plan/source_element.c,
 * engine/plan/source_reduce.c and engine/plan/source_tables.c. */
#ifndef SCL_ENGINE_PLAN_SOURCE_H
#define SCL_ENGINE_PLAN_SOURCE_H

#include "engine/plan/plan.h"

typedef struct {
  char *text;
  size_t used, room;
  bool failed; /* no memory */
  const scl_plan *p;
} scl_writer;

/* Appends. */
SCL_PRINTF(2, 3)
void scl_put(scl_writer *w, const char *format, ...);

/* Functions of the operations of the plan, and of its reductions. */
void scl_put_op_functions(scl_writer *w);
void scl_put_combine_functions(scl_writer *w);
/* The operation of a step, as an expression. */
void scl_put_apply(scl_writer *w, const scl_step *step);
/* Statements: total = combine of output k (total, number); or the same for pairs with indices. */
void scl_put_combine(scl_writer *w, const char *indent, int k, const char *total,
                     const char *number, const char *at, const char *number_at);
/* The identity of a reduction of the table. */
const char *scl_identity_text(const scl_output *o);

/* ---- elements (engine/plan/source_element.c)
 * --------------------------------------------------------------- */
/* Columns of a product that are read at once. */
enum { SCL_PUT_BATCH = 4 };
/* Parameters of a kernel: sizes, leaves, numbers and results that are stored. */
void scl_put_inputs(scl_writer *w);
/* A leaf's element at (i, j) as an expression, zero where it must not be read. */
void scl_put_load(scl_writer *w, int leaf);
/* Whether (i, j) is inside each rectangle; and the statements for that case. */
void scl_put_rectangles(scl_writer *w, const char *indent);
void scl_put_element(scl_writer *w, const char *indent);
/* The pragma before a loop over some elements of a work-item. */
const char *scl_unrolled(const scl_plan *p);
/* Heads of loops over a work-item's rows and columns; or all of a loop over pairs of rows. */
void scl_put_rows_loop(scl_writer *w, const char *indent);
void scl_put_columns_loop(scl_writer *w, const char *indent);
void scl_put_pairs(scl_writer *w);

/* ---- reductions (engine/plan/source_reduce.c)
 * ---------------------------------------------------------- */
/* The body of the kernel, by margin; and the kernel of the second step. */
void scl_put_total_body(scl_writer *w);
void scl_put_column_body(scl_writer *w);
void scl_put_row_body(scl_writer *w);
void scl_put_final(scl_writer *w);
/* Totals of nothing, by their names a0, a1, ... */
void scl_put_totals(scl_writer *w);

/* ---- passes (engine/plan/source_pass.c) ----------------------------------------------------- */
/* The kernel; the same by matrix instructions (engine/plan/source_mma.c); and that which adds. */
void scl_put_pass(scl_writer *w);
void scl_put_pass_mma(scl_writer *w);
void scl_put_pass_sums(scl_writer *w);
/* Whether a leaf is read by steps, and then whether it changes with the row. */
bool scl_is_loaded(const scl_plan *p, int leaf);
bool scl_is_by_row(const scl_leaf *l);

#endif
