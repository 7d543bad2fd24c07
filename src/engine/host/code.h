/* Code that the host runs repeatedly: between the files of src/engine/host. */
#ifndef SCL_ENGINE_HOST_CODE_H
#define SCL_ENGINE_HOST_CODE_H

#include "engine/host/plan.h"
#include "engine/host/vector_math.h"

typedef enum { LOOP, VECTORS, PRODUCT, FILL, COPY } scl_host_loop_kind;

/* A step of a plan, for runs of elements. */
typedef struct {
  scl_host_loop_kind kind;
  scl_op_loop *loop;
  scl_vector_function *vectors;
  scl_run arg[3]; /* of a product: the matrix; of a filling: the number */
  size_t columns, ld;
  const double *weight;
  double *to;
  bool moves[3], to_moves; /* from block to block: it is not one of the plan's own blocks */
} scl_host_loop;

typedef struct {
  scl_reduction op;
  const double *from;
  bool moves;
  double *to, identity, total;
} scl_host_total;

/* The part of a plan that is computed element by element. */
typedef struct {
  size_t rows;
  int loops, totals;
  scl_host_loop *loop;
  scl_host_total total[SCL_PLAN_OUTPUTS];
} scl_host_blocks;

/* *to = op(*a, *b), or what follows; of an IFELSE the third operand is `a` of the next entry. */
typedef struct {
  size_t op;
  double *to;
  union {
    const double *a;
    scl_host_blocks *blocks;
  };
  union {
    const double *b;
    size_t count;
  };
} scl_host_code;

enum {
  SCL_CODE_COPY = SCL_OP_COUNT, /* *to = *a */
  SCL_CODE_THREE,  /* the operation and its third operand are those of the next entry */
  SCL_CODE_BLOCKS, /* the elements of a plan */
  SCL_CODE_GATHER, /* to[k] = a[b[k]]; `count` of the next entry says for how many k */
  SCL_CODE_SUMS    /* to[k] = the sum of a[i] for i from b[k] to before b[k + 1] in the list `a`
                      of the next entry, which has the `count` too */
};

/* Runs these entries. */
void scl_host_code_run(const scl_host_code *code, int entries);

#endif
