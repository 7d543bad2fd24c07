/* Plans of lazy arithmetic: the computation of one pass over m x n elements. The graph and
 * operations on blocks make plans, engines run them (base/engine.h: expr).
 *
 * A plan has steps in order, each a number for each element, and outputs that store or reduce some
 * of them. It does not depend on the graph that it was made from. Its structure (everything but
 * blocks, strides, numbers and sizes) decides the source of its kernel. */
#ifndef SCL_ENGINE_PLAN_PLAN_H
#define SCL_ENGINE_PLAN_PLAN_H

#include "engine/plan/elementwise.h"

enum {
  SCL_PLAN_STEPS = 256,
  SCL_PLAN_LEAVES = 20,
  SCL_PLAN_NUMBERS = 32,
  SCL_PLAN_RECTANGLES = 4,
  SCL_PLAN_OUTPUTS = 8
};

typedef enum {
  SCL_STEP_LOAD,     /* leaf arg[0] */
  SCL_STEP_NUMBER,   /* number arg[0] */
  SCL_STEP_INDEX,    /* i (arg[0] = 0) or j (1), plus number arg[1] */
  SCL_STEP_INSIDE,   /* 1 inside rectangle arg[0], else 0 */
  SCL_STEP_MATVEC,   /* sum over l of leaf arg[0] at (., l) times leaf arg[1] at l */
  SCL_STEP_ARGUMENT, /* in a combining expression: the left (arg[0] = 0) or right value */
  SCL_STEP_APPLY     /* op(steps arg[0], ...) */
} scl_step_kind;

typedef struct {
  uint8_t kind, op;
  uint16_t arg[3];
} scl_step;

/* How a leaf is read: element at + i * step_i + j * step_j. */
typedef enum {
  SCL_READ_ONE,    /* neither i nor j */
  SCL_READ_COLUMN, /* i, step 1; not j */
  SCL_READ_ROW,    /* j only */
  SCL_READ_MATRIX, /* i with step 1, and j */
  SCL_READ_ACROSS, /* j with step 1, and i: transposed */
  SCL_READ_STRIDED /* anything else */
} scl_read;

typedef struct {
  scl_buffer *buffer; /* borrowed */
  size_t at, step_i, step_j;
  size_t inner, length; /* of a matrix-vector product: stride of its terms, and how many */
  uint8_t read;         /* scl_read */
  uint8_t triangle;     /* SCL_LOWER: zero, and not read, where i < j; SCL_UPPER likewise */
  uint8_t rectangle;    /* 1 + the only one in which it may be read, or 0 */
  bool paired;          /* rows 2 i and 2 i + 1 may be read by one load (plan's `pairs`) */
} scl_leaf;

/* Which strides of a leaf are arguments of a kernel: those that do not follow from how it is
 * read. */
static inline bool scl_leaf_takes_i(const scl_leaf *l) {
  return l->read == SCL_READ_ACROSS || l->read == SCL_READ_STRIDED;
}
static inline bool scl_leaf_takes_j(const scl_leaf *l, bool several_columns) {
  return several_columns &&
         (l->read == SCL_READ_ROW || l->read == SCL_READ_MATRIX || l->read == SCL_READ_STRIDED);
}
/* Of a product, the matrix has stride and number of terms as arguments, the vector none. */
static inline bool scl_leaf_takes_terms(const scl_leaf *l) {
  return l->length > 0 && l->read != SCL_READ_ONE;
}

/* Elements i0 <= i < i1, j0 <= j < j1. */
typedef struct {
  size_t i0, i1, j0, j1;
} scl_rectangle;

typedef struct {
  uint16_t step;
  bool reduces;
  bool product;      /* in a pass: X' times the step, X being leaf `first` (engine/plan/pass.h) */
  uint8_t op;        /* scl_reduction, or SCL_REDUCE_COUNT for a combining expression */
  uint16_t identity; /* then: its number, */
  uint16_t first, last; /* and its steps first .. last - 1, of which `value` gives the result */
  uint16_t value;
  scl_block dst; /* m x n; of a reduction one column of 1, m or n numbers, by the plan's margin */
} scl_output;

typedef struct scl_plan {
  size_t m, n;          /* elements; n == 1 whenever one column is enough */
  uint8_t margin;       /* of all reductions */
  bool in_place;        /* an output may be a leaf, element by element */
  bool wide;            /* elements must be counted by 64-bit numbers */
  bool pairs;           /* products inside are computed for two rows at a time */
  uint8_t triangle;     /* zero outside it, and nothing is computed there: SCL_LOWER, SCL_UPPER */
  uint8_t pass;         /* 1 + the leaf whose rows are read once for all products (pass.h), or 0 */
  bool pass_mma;        /* by matrix instructions */
  uint16_t steps, body; /* steps of the body come first, then those of combining expressions */
  uint8_t leaves, numbers, rectangles, outputs;
  scl_step step[SCL_PLAN_STEPS];
  scl_leaf leaf[SCL_PLAN_LEAVES];
  double number[SCL_PLAN_NUMBERS];
  scl_rectangle rectangle[SCL_PLAN_RECTANGLES];
  scl_output output[SCL_PLAN_OUTPUTS];
} scl_plan;

static inline bool scl_reduces_to_index(unsigned op) {
  return op == SCL_REDUCE_WHICH_MAX || op == SCL_REDUCE_WHICH_MIN;
}

/* ---- making one (engine/plan/plan.c) -------------------------------------------------------- */
/* A plan over m x n elements without steps. */
void scl_plan_begin(scl_plan *plan, size_t m, size_t n);
/* Each returns the index of an equal part that the plan already has, or of a new one; SCL_PLAN_FULL
 * if a limit is exceeded. Steps are only compared with those from `first` on. */
enum { SCL_PLAN_FULL = -1 };
int scl_plan_add_step(scl_plan *plan, int first, scl_step_kind kind, unsigned op, int a, int b,
                      int c);
int scl_plan_add_number(scl_plan *plan, double value);
int scl_plan_add_rectangle(scl_plan *plan, scl_rectangle r);
int scl_plan_add_leaf(scl_plan *plan, scl_leaf leaf); /* its `read` is found here */
/* Steps that read a leaf, have a number, or are the product of the row of x and, for column j of
 * the plan, column j of b; the leaf of such an x. */
int scl_plan_load(scl_plan *plan, int first, scl_leaf leaf);
int scl_plan_number(scl_plan *plan, int first, double value);
int scl_plan_product(scl_plan *plan, int first, scl_block x, scl_block b);
int scl_plan_add_matrix(scl_plan *plan, scl_block x);
/* Whether a kernel may have its arguments. */
bool scl_plan_is_callable(const scl_plan *plan);
/* Products of matrices with fewer rows are calls. */
enum { SCL_PLAN_MANY_ROWS = 4096 };
void scl_plan_set_read(const scl_plan *plan, scl_leaf *leaf);
/* Call it when the plan has all parts: chooses the order of the elements, one column instead of
 * several where no step needs the indices. `ld` is that of results that are stored. */
void scl_plan_end(scl_plan *plan, size_t ld);
/* Output k goes to `dst`, with the leading dimension given to scl_plan_end(). */
void scl_plan_place(scl_plan *plan, size_t k, scl_block dst);

/* ---- facts ---------------------------------------------------------------------------------- */
bool scl_plan_reads_across(const scl_plan *plan); /* any leaf */
bool scl_plan_reduces(const scl_plan *plan);      /* any output */
/* Whether its source calls inst/kernels/include/special_functions.h, and incomplete_functions.h or
 * bessel_functions.h. */
bool scl_plan_is_special(const scl_plan *plan);
bool scl_plan_is_incomplete(const scl_plan *plan);
bool scl_plan_is_bessel(const scl_plan *plan);
/* Whether a leaf that is read across columns goes through local memory, in tiles of SCL_PLAN_TILE
 * rows and columns; at most SCL_PLAN_TILES leaves do. */
enum { SCL_PLAN_TILE = 32, SCL_PLAN_TILES = 4, SCL_PLAN_TILE_ROWS = 4 };
/* Elements of a work-item where nothing is reduced and there is one column. */
enum { SCL_PLAN_ELEMENTS = 4 };
bool scl_plan_is_tiled(const scl_plan *plan, int leaf);
bool scl_plan_has_tiles(const scl_plan *plan);

/* The bytes that decide the source of a plan's kernel, at most SCL_PLAN_KEY of them, at `to`.
 * Returns their number; equal bytes mean equal sources. */
enum { SCL_PLAN_KEY = 8192 };
size_t scl_plan_key(const scl_plan *plan, unsigned char *to);
/* OpenCL C of a plan (engine/plan/source.c); free() it. The kernel `expr` and, if the plan has
 * reductions, `expr_final`; engine/cl/elementwise/plan.c describes their work-items. */
scl_status scl_plan_source(const scl_plan *plan, char **out);
/* Kernels that were compiled in this process. */
void scl_plan_count_built(void);
uint64_t scl_plans_built(void);

#endif
