/* Shared by the files src/program/roll*.c.
 *
 * Recorded values that only move elements (parts, gathers, concatenations ...) are not computed:
 * views say which elements of which roots they have. A root is any other value. Its place says
 * where its elements are on the new tape, once it was put there. */
#ifndef SCL_PROGRAM_ROLL_PARTS_H
#define SCL_PROGRAM_ROLL_PARTS_H

#include "program/tape.h"

enum { SCL_ROLL_NONE = -1, SCL_ROLL_FEWEST = 8 }; /* no loop has fewer iterations */

typedef struct {
  int root;
  int at;
} scl_roll_element;

/* Elements from, from + step, ... of a root, or a list of elements. */
typedef struct {
  int root; /* SCL_ROLL_NONE: a list */
  size_t from, step;
  const scl_roll_element *list;
} scl_roll_view;

/* Element e of a root is element at + e * step of a value of the new tape. */
typedef struct {
  int value; /* SCL_ROLL_NONE: not there yet */
  size_t at, step;
} scl_roll_place;

/* An element of the new tape; a number if value is SCL_ROLL_NONE. */
typedef struct {
  int value;
  size_t at;
  double number;
  int rank; /* for scl_roll_gather() */
} scl_roll_source;

typedef struct {
  int node;
  bool minus;
} scl_roll_term;

/* How a root is computed in the rolled program. */
typedef enum {
  SCL_ROLL_ALONE,   /* an operation of its own, or one element of a vector operation */
  SCL_ROLL_INSIDE,  /* within a sum, which takes over its terms */
  SCL_ROLL_SUM,     /* of many terms */
  SCL_ROLL_SCANNED, /* computed by the steps of a scan */
  SCL_ROLL_READ     /* one of many data vectors, read as numbers */
} scl_roll_role;

/* A carried number of a scan: element `at` of the value at a position, `lag` iterations ago. */
typedef struct {
  int position, at, lag;
  scl_roll_element init;
  bool early; /* the results of all iterations follow the first value (roll_inits.c) */
} scl_roll_state;

/* An operand's element in a step. */
typedef struct {
  enum { SCL_ROLL_NUMBER, SCL_ROLL_OWN, SCL_ROLL_CARRIED, SCL_ROLL_FIXED, SCL_ROLL_X } kind;
  int position, at; /* OWN: of the same step */
  int number;       /* which state, fixed input or input; NUMBER: the recorded value */
} scl_roll_input;

/* Iterations that become a scan: `count` windows of `period` operations of the list `seq`. The last
 * one may end early: the step computes what it lacks, and nothing reads that. */
typedef struct {
  int start, period, count;
  int length; /* operations of all windows */
  int *body;  /* the positions within the step, in order */
  int bodies;
  int *place; /* of each position in `body`, or NONE */
  scl_roll_state *state;
  int states, state_room;
  scl_roll_element *x; /* of each input `count` elements */
  int xs, x_room;
  scl_roll_element *fixed;
  int fixeds, fixed_room;
  scl_roll_input **input; /* of each body position: of all its operands' elements */
  int *out;               /* of each body position: its first column among the outputs, or NONE */
  int outs;
  int height;
  int more; /* steps behind the last iteration */
  bool done;
} scl_roll_loop;

typedef struct {
  scl_tape *from, *to;
  int nodes, output;
  scl_roll_view *view;
  scl_roll_place *place;
  uint8_t *role;
  bool *live;      /* roots */
  int *uses;       /* of a root: operands that have elements of it */
  int *user;       /* the first operation that has it */
  uint64_t *local; /* of a live root: a hash of all but which values its operands are */
  int *number;     /* the first root with an equal value */
  int *height;
  uint64_t *sig;
  scl_roll_term **term; /* of a sum */
  int *terms;
  int *top; /* of what is in a sum: the sum */
  int *loop_of;
  int *after; /* the loop for which an operation waits (roll_inits.c), or NONE */
  int *seq;   /* operations, in order */
  int *seq_at;
  int operations;
  scl_roll_loop *loop;
  int loops;
  void **held; /* all memory */
  int holds, hold_room;
  int own_first; /* data of the new tape from here on are its own */
  bool broken;   /* nothing is rolled */
} scl_roll;

/* ---- roll_view.c ---------------------------------------------------------------------------- */
/* Zeros, freed at the end; NULL on failure, which is noted. */
void *scl_roll_room(scl_roll *r, size_t count, size_t size);
bool scl_roll_failed(const scl_roll *r);
void scl_roll_find_views(scl_roll *r);
scl_roll_element scl_roll_at(const scl_roll *r, int node, size_t k);
/* Whether a value only moves elements. */
bool scl_roll_is_move(const scl_roll *r, int node);
/* Finds live roots and their uses. */
void scl_roll_find_uses(scl_roll *r);
/* Numbers live roots: equal operations on equal elements have one number. */
void scl_roll_find_equal(scl_roll *r);
/* Whether the node is a root, whole. */
static inline bool scl_roll_is_root(const scl_roll *r, int node) {
  return r->view[node].root == node;
}
static inline const scl_value *scl_roll_value(const scl_roll *r, int node) {
  return &r->from->value[node];
}
/* Of the roots whose elements an operand has, whichever elements these are. */
uint64_t scl_roll_operand_sig(const scl_roll *r, int node);
/* The same, exactly. */
bool scl_roll_same_operation(const scl_roll *r, int a, int b);

/* ---- roll_gather.c -------------------------------------------------------------------------- */
scl_roll_source scl_roll_source_of(scl_roll *r, scl_roll_element e);
/* The value with these elements; of length 1 if all are one element. */
int scl_roll_gather(scl_roll *r, scl_roll_source *s, size_t count);
/* Whether a view, with steps at up to two levels, reads these elements of one value. */
bool scl_roll_is_ordered(const scl_roll_source *s, size_t count);
/* By value and element, for qsort(). */
int scl_roll_by_source(const void *a, const void *b);
/* How many different numbers these are, which are sorted. */
size_t scl_roll_count_different(int *x, size_t count);
/* Whether all elements are one. */
bool scl_roll_all_same(const scl_roll_source *s, size_t count);
/* How much that costs: 0 if it is there already; SCL_ROLL_TOO_MUCH for single numbers. */
enum { SCL_ROLL_GATHERED = 10, SCL_ROLL_TOO_MUCH = 1000 };
int scl_roll_gather_cost(scl_roll *r, const scl_roll_source *s, size_t count);
/* Numbers as data of the new tape, equal ones once. */
int scl_roll_data(scl_roll *r, double *numbers, size_t count);
/* A recorded value as a whole value of the new tape. */
int scl_roll_whole(scl_roll *r, int node);

/* ---- roll_sums.c ---------------------------------------------------------------------------- */
void scl_roll_find_sums(scl_roll *r);

/* ---- roll_loops.c --------------------------------------------------------------------------- */
void scl_roll_find_loops(scl_roll *r);

/* The operation at a position, or SCL_ROLL_NONE behind the end of the last window. */
static inline int scl_roll_node_at(const scl_roll *r, const scl_roll_loop *l, int i, int position) {
  const int at = i * l->period + position;
  return at < l->length ? r->seq[l->start + at] : SCL_ROLL_NONE;
}

/* ---- roll_inits.c --------------------------------------------------------------------------- */
void scl_roll_find_inits(scl_roll *r);
/* The node that, in the first iteration, computes the number that was `first` before; or NONE. */
int scl_roll_result_of(const scl_roll *r, int loop, scl_roll_element first);

/* ---- roll_scan.c ---------------------------------------------------------------------------- */
void scl_roll_put_loop(scl_roll *r, scl_roll_loop *loop);

/* ---- roll_class.c --------------------------------------------------------------------------- */
/* Puts roots of one height on the new tape that have one signature. */
void scl_roll_put_class(scl_roll *r, const int *member, int count);

/* ---- roll_total.c --------------------------------------------------------------------------- */
void scl_roll_put_sums(scl_roll *r, const int *member, int count);

#endif
