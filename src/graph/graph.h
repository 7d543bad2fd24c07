/* Inside of lazy arithmetic: nodes, and the plan that an engine runs. Included by scl_expr*.c and
 * by the plan files of the engines.
 *
 * A node is a value at each place of its shape, made of other nodes. Nodes are reference counted
 * and point downwards only. A pending matrix holds one node; other nodes may hold the same one.
 * When it is computed the node becomes a leaf, whoever holds it, and lets its operands go. */
#ifndef SCL_GRAPH_GRAPH_H
#define SCL_GRAPH_GRAPH_H

#include "graph/expr.h"
#include "engine/plan/elementwise.h"

typedef enum {
  SCL_NODE_LEAF,       /* block */
  SCL_NODE_NUMBER,     /* number; fits every shape */
  SCL_NODE_APPLY,      /* op(arg[0], ...) */
  SCL_NODE_TRANSPOSE,  /* of arg[0] */
  SCL_NODE_BROADCAST,  /* of arg[0] */
  SCL_NODE_PART,       /* of arg[0], from (i, j) */
  SCL_NODE_WITH_PART,  /* arg[0] with arg[1] from (i, j) on */
  SCL_NODE_INDEX,      /* row or column number, by margin */
  SCL_NODE_MATVEC,     /* arg[0] (a leaf) times arg[1] (a leaf, one column) */
  SCL_NODE_REDUCE,     /* of arg[0]; arg[1] is the combining expression or NULL */
  SCL_NODE_PLACEHOLDER /* op: which */
} scl_node_kind;

typedef struct scl_node {
  uint32_t refs;
  uint8_t kind, op, margin;
  bool placeholder; /* stands on a placeholder: has no value of its own */
  uint16_t depth;
  scl_view view;
  size_t nrow, ncol;
  struct scl_node *arg[3];
  double number; /* of a number; the identity of a reduction with a combining expression */
  size_t i, j;
  scl_block block;       /* of a leaf; the buffer is held */
  uint64_t seen;         /* stamp of the last walk that came by */
  struct scl_node *next; /* in the list of a walk, or of what is being released */
} scl_node;

scl_node *scl_node_retain(scl_node *node);
void scl_node_release(scl_node *node); /* accepts NULL; not recursive */
/* The node of a matrix: that which is pending, or a new leaf. Release it. */
scl_status scl_node_of(scl_mat *x, scl_node **out);
/* Turns a node into a leaf; takes the buffer of `block` over. */
void scl_node_settle(scl_node *node, scl_block block);
uint64_t scl_node_stamp(void); /* a new one */
/* Computes one node, in place. */
scl_status scl_node_force(scl_context *ctx, scl_node *node);

/* ---- plans ---------------------------------------------------------------------------------- */
/* A plan is what one pass over m x n places does: steps in order, each a number at each place, and
 * outputs that take some of them. It is free of nodes. Its structure (everything but blocks,
 * distances, numbers and sizes) decides the source of its kernel. */
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
  SCL_STEP_PLACE,    /* i (arg[0] = 0) or j (1), plus number arg[1] */
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
  size_t inner, length; /* of a matrix-vector product: distance of its terms, and how many */
  uint8_t read;         /* scl_read */
  uint8_t triangle;     /* SCL_LOWER: zero, and not read, where i < j; SCL_UPPER likewise */
  uint8_t rectangle;    /* 1 + that in which alone it may be read, or 0 */
  bool paired;          /* rows 2 i and 2 i + 1 may be read by one load (plan's `pairs`) */
} scl_leaf;

/* Which distances a kernel takes of a leaf: those that are not known from how it is read. */
static inline bool scl_leaf_takes_i(const scl_leaf *l) {
  return l->read == SCL_READ_ACROSS || l->read == SCL_READ_STRIDED;
}
static inline bool scl_leaf_takes_j(const scl_leaf *l, bool several_columns) {
  return several_columns &&
         (l->read == SCL_READ_ROW || l->read == SCL_READ_MATRIX || l->read == SCL_READ_STRIDED);
}
/* Of a product inside, the matrix takes the distance and the number of terms, the vector none. */
static inline bool scl_leaf_takes_terms(const scl_leaf *l) {
  return l->length > 0 && l->read != SCL_READ_ONE;
}

/* Places i0 <= i < i1, j0 <= j < j1. */
typedef struct {
  size_t i0, i1, j0, j1;
} scl_rectangle;

typedef struct {
  uint16_t step;
  bool reduces;
  uint8_t op;           /* scl_reduction, or SCL_REDUCE_COUNT for a combining expression */
  uint16_t identity;    /* then: its number, */
  uint16_t first, last; /* and its steps first .. last - 1, of which `value` gives the result */
  uint16_t value;
  scl_block dst; /* m x n; of a reduction one column of 1, m or n numbers, by the plan's margin */
} scl_output;

typedef struct scl_plan {
  size_t m, n;          /* places; n == 1 whenever one column will do */
  uint8_t margin;       /* of all reductions */
  bool in_place;        /* an output may be a leaf, element by element */
  bool wide;            /* places have to be counted by 64-bit numbers */
  bool pairs;           /* products inside are computed for two rows at a time */
  uint8_t triangle;     /* zero outside it, and nothing is computed there: SCL_LOWER, SCL_UPPER */
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

/* Plans up to SCL_PLAN_OUTPUTS nodes of one shape (scl_node_places()) and margin, below which no
 * reduction is left; false when a limit of the plan is passed. Outputs take their blocks, which are
 * made by scl_mat_ld(), afterwards: scl_plan_place(). */
bool scl_plan_make(const scl_context *ctx, size_t count, scl_node *const *roots, scl_plan *plan);
void scl_plan_place(scl_plan *plan, size_t k, scl_block dst);
bool scl_plan_reads_across(const scl_plan *plan); /* any leaf */
/* The places that a node's computation walks over: its own shape, or that of what it reduces. */
static inline const scl_node *scl_node_places(const scl_node *node) {
  return node->kind == SCL_NODE_REDUCE ? node->arg[0] : node;
}
/* The bytes that decide the source of a plan's kernel, at most SCL_PLAN_KEY of them, at `to`.
 * Gives how many; equal bytes mean equal sources. */
enum { SCL_PLAN_KEY = 8192 };
size_t scl_plan_key(const scl_plan *plan, unsigned char *to);

/* OpenCL C of a plan (engine/plan/source.c); free() it. The kernel `expr` and, where something is
 * reduced, `expr_final`; engine/cl/elementwise/plan.c says what their work-items do. */
scl_status scl_plan_source(const scl_plan *plan, char **out);
/* Whether a leaf that is read across comes through local memory, in tiles of SCL_PLAN_TILE rows and
 * columns; up to SCL_PLAN_TILES of them do. */
enum { SCL_PLAN_TILE = 32, SCL_PLAN_TILES = 4, SCL_PLAN_TILE_ROWS = 4 };
/* Elements of a work-item where nothing is reduced and there is one column. */
enum { SCL_PLAN_ELEMENTS = 4 };
bool scl_plan_is_tiled(const scl_plan *plan, int leaf);
bool scl_plan_has_tiles(const scl_plan *plan);
bool scl_plan_reduces(const scl_plan *plan); /* any output */
/* Whether its source calls inst/kernels/include/special_functions.h. */
bool scl_plan_is_special(const scl_plan *plan);

void scl_expr_count_built(void); /* a kernel was compiled */

#endif
