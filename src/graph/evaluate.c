/* Lazy arithmetic: which nodes are computed together, in which order, and how they are printed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "graph/graph.h"
#include "ops/operation.h"

static scl_expr_counters counters;

scl_expr_counters scl_expr_counts(void) {
  counters.built = scl_plans_built();
  return counters;
}

/* From this number of elements on, an operand that is repeated along rows or columns is computed
 * once beforehand. */
enum { MANY_ELEMENTS = 65536 };

static scl_status eval_nodes(scl_context *ctx, size_t count, scl_node **nodes, char **text);

/* ---- lists of nodes ------------------------------------------------------------------------- */

typedef struct {
  scl_node **node;
  size_t count;
  int room;
} node_list;

/* The list holds no reference to the node. */
static scl_status append(node_list *list, scl_node *node) {
  const size_t needed = list->count + 1;
  SCL_TRY(scl_grow(&list->node, &list->room, needed, sizeof *list->node, "an expression"));
  list->node[list->count++] = node;
  return SCL_OK;
}

/* The list holds a reference, which release_list() releases. */
static scl_status append_held(node_list *list, scl_node *node) {
  SCL_TRY(append(list, node));
  scl_node_retain(node);
  return SCL_OK;
}

static void release_list(node_list *list) {
  for (size_t k = 0; k < list->count; k++) scl_node_release(list->node[k]);
  free(list->node);
}

/* ---- what has to be computed first ---------------------------------------------------------- */

static bool is_value(const scl_node *node) {
  return node->kind == SCL_VALUE_DATA || node->kind == SCL_VALUE_NUMBER;
}

/* Whether a product is computed inside the kernel over these elements. */
static bool fits_inside(const scl_node *product, const scl_node *domain) {
  return domain->ncol == 1 && domain->nrow >= SCL_PLAN_MANY_ROWS && product->nrow == domain->nrow &&
         product->arg[0]->ncol > 0;
}

/* Whether a node is computed by its own engine function, not in the kernel over these elements. */
static bool stands_alone(const scl_node *node, const scl_node *domain) {
  return scl_node_is_call(node) || (node->kind == SCL_VALUE_MATVEC && !fits_inside(node, domain));
}

/* Whether all operands must be computed before the node is. */
static bool takes_values(const scl_node *node) {
  return scl_node_is_call(node) || node->kind == SCL_VALUE_MATVEC;
}

/* Adds the nodes that must be leaves before `node` can be planned, but not those that these need in
 * turn.
 */
static scl_status find_first(scl_node *node, const scl_node *domain, uint64_t stamp,
                             node_list *first) {
  if (node->seen == stamp || is_value(node)) return SCL_OK;
  node->seen = stamp;
  const bool many = domain->nrow * domain->ncol >= MANY_ELEMENTS;
  for (int k = 0; k < 3 && node->arg[k] != NULL; k++) {
    scl_node *arg = node->arg[k];
    const bool alone = arg->kind == SCL_VALUE_REDUCE || stands_alone(arg, domain) ||
                       (takes_values(node) && !is_value(arg)) ||
                       (node->kind == SCL_VALUE_BROADCAST && arg->kind == SCL_VALUE_APPLY && many);
    if (!alone) {
      SCL_TRY(find_first(arg, domain, stamp, first));
    } else if (arg->seen != stamp) {
      arg->seen = stamp;
      SCL_TRY(append_held(first, arg));
    }
  }
  return SCL_OK;
}

/* Computes these nodes for several others at once, so that they share kernels too. */
static scl_status compute_sources(scl_context *ctx, size_t count, scl_node *const *nodes) {
  node_list first = {0};
  scl_status status = SCL_OK;
  for (size_t k = 0; k < count; k++) {
    scl_node *node = nodes[k];
    const scl_node *domain = scl_node_domain(node);
    /* A new walk for each: a node that is part of the kernel of one may have to be a leaf for
     * another. */
    const uint64_t stamp = scl_node_stamp();
    if (node->kind == SCL_VALUE_REDUCE && domain->kind == SCL_VALUE_REDUCE) {
      SCL_GO(append_held(&first, node->arg[0]));
    } else if (node->kind == SCL_VALUE_REDUCE && stands_alone(domain, domain)) {
      SCL_GO(append_held(&first, node->arg[0]));
    } else {
      SCL_GO(
          find_first(node->kind == SCL_VALUE_REDUCE ? node->arg[0] : node, domain, stamp, &first));
    }
  }
  if (first.count > 0) status = eval_nodes(ctx, first.count, first.node, NULL);
done:
  release_list(&first);
  return status;
}

/* ---- one group ------------------------------------------------------------------------------ */

static unsigned count_nodes(scl_node *node, uint64_t stamp) {
  if (node->seen == stamp) return 0;
  node->seen = stamp;
  unsigned count = 1;
  for (int k = 0; k < 3 && node->arg[k] != NULL; k++) count += count_nodes(node->arg[k], stamp);
  return count;
}

/* The operand with the most nodes that are to be computed, `most`; NULL if there are none. */
static scl_node *largest_operand(const scl_node *node, unsigned *most) {
  /* not the combining expression of a reduction */
  const int operands = node->kind == SCL_VALUE_REDUCE ? 1 : 3;
  scl_node *largest = NULL;
  *most = 0;
  for (int k = 0; k < operands && node->arg[k] != NULL; k++) {
    unsigned count = is_value(node->arg[k]) ? 0 : count_nodes(node->arg[k], scl_node_stamp());
    if (count <= *most) continue;
    *most = count;
    largest = node->arg[k];
  }
  return largest;
}

/* For a graph that exceeds a limit: computes its largest operand first. */
static scl_status cut(scl_context *ctx, scl_node *node) {
  unsigned most = 0;
  scl_node *largest = largest_operand(node, &most), *next = largest;
  counters.cut++;
  if (largest == NULL) return scl_fail_argument("combine", "'combine' has too many operations");
  /* At most half of it, so that the pieces have similar sizes. */
  while (next != NULL) {
    largest = next;
    next = most > SCL_PLAN_STEPS / 2 && largest->kind == SCL_VALUE_APPLY
               ? largest_operand(largest, &most)
               : NULL;
  }
  return scl_node_force(ctx, largest);
}

static scl_status make_results(scl_context *ctx, scl_node *const *nodes, scl_plan *plan,
                               scl_block *made) {
  scl_status status = SCL_OK;
  for (int k = 0; k < plan->outputs && status == SCL_OK; k++) {
    status = scl_block_create(ctx, nodes[k]->nrow, nodes[k]->ncol, &made[k]);
    if (status == SCL_OK) scl_plan_place(plan, (size_t)k, made[k]);
  }
  return status;
}

/* Computes the transposed operands of a graph, which a device would have to read across columns. */
static scl_status force_transposed(scl_context *ctx, scl_node *node, uint64_t stamp) {
  if (node->seen == stamp || is_value(node)) return SCL_OK;
  node->seen = stamp;
  for (int k = 0; k < 3 && node->arg[k] != NULL; k++) {
    scl_node *arg = node->arg[k];
    if (arg->kind == SCL_VALUE_TRANSPOSE) {
      SCL_TRY(scl_node_force(ctx, arg));
    } else {
      SCL_TRY(force_transposed(ctx, arg, stamp));
    }
  }
  return SCL_OK;
}

/* Whether that is faster. Only kernels that store all elements transpose through tiles in local
 * memory.
 */
static bool must_force_transposed(const scl_context *ctx, const scl_plan *plan) {
  return scl_traits(ctx)->prefers_transposed_copy && scl_plan_reduces(plan) &&
         scl_plan_reads_across(plan) && plan->m * plan->n >= MANY_ELEMENTS;
}

/* Appends the source of a plan's kernel. */
static scl_status add_source(const scl_plan *plan, char **text) {
  char *more;
  SCL_TRY(scl_plan_source(plan, &more));
  const size_t before = strlen(*text), bytes = before + strlen(more) + 2;
  char *longer = realloc(*text, bytes);
  if (longer != NULL) {
    *text = longer;
    snprintf(longer + before, bytes - before, "%s%s", before > 0 ? "\n" : "", more);
  }
  free(more);
  return longer != NULL ? SCL_OK : scl_fail_memory(bytes, 0, "a kernel source");
}

/* Computes nodes of one shape and margin by one plan; with `text`, its source is appended instead.
 * *fits is false, and nothing is done, if they exceed its limits. */
static scl_status run_plan(scl_context *ctx, size_t count, scl_node **nodes, char **text,
                           bool *fits) {
  scl_plan plan;
  scl_block made[SCL_PLAN_OUTPUTS] = {{0}};
  scl_status status;
  *fits = count <= SCL_PLAN_OUTPUTS && scl_plan_make(ctx, count, nodes, &plan);
  if (!*fits) return SCL_OK;
  if (must_force_transposed(ctx, &plan)) {
    for (size_t k = 0; k < count; k++) SCL_GO(force_transposed(ctx, nodes[k], scl_node_stamp()));
    *fits = scl_plan_make(ctx, count, nodes, &plan);
    if (!*fits) return SCL_OK;
  }
  if (text != NULL) return add_source(&plan, text);
  SCL_GO(make_results(ctx, nodes, &plan, made));
  SCL_GO(ctx->engine->expr(ctx, &plan));
  counters.evaluated++;
  for (size_t k = 0; k < count; k++) scl_node_set_block(nodes[k], made[k]);
  return SCL_OK;
done:
  for (size_t k = 0; k < count; k++) scl_buffer_release(made[k].buffer);
  return status;
}

static scl_status run_group(scl_context *ctx, size_t count, scl_node **nodes, char **text) {
  bool fits;
  for (;;) {
    /* cut() may have computed other nodes of the group. */
    size_t open = 0;
    for (size_t k = 0; k < count; k++) {
      if (!is_value(nodes[k])) nodes[open++] = nodes[k];
    }
    count = open;
    if (count == 0) return SCL_OK;
    SCL_TRY(run_plan(ctx, count, nodes, text, &fits));
    if (fits) return SCL_OK;
    if (count > 1) {
      SCL_TRY(run_group(ctx, count / 2, nodes, text));
      return run_group(ctx, count - count / 2, nodes + count / 2, text);
    }
    SCL_TRY(cut(ctx, nodes[0]));
    SCL_TRY(compute_sources(ctx, 1, nodes));
  }
}

/* ---- groups --------------------------------------------------------------------------------- */

static bool has_elements(const scl_node *node) {
  const scl_node *domain = scl_node_domain(node);
  return domain->nrow > 0 && domain->ncol > 0;
}

/* Whether a node can join a group over these elements; `margin`: of its reductions, or -1. */
static bool joins(const scl_node *node, const scl_node *domain, int margin) {
  const scl_node *mine = scl_node_domain(node);
  if (mine->nrow != domain->nrow || mine->ncol != domain->ncol) return false;
  return node->kind != SCL_VALUE_REDUCE || margin < 0 || (int)scl_node_margin(node) == margin;
}

/* Moves a group to the front of nodes; returns its length. */
static size_t gather_group(size_t count, scl_node **nodes) {
  const scl_node *domain = scl_node_domain(nodes[0]);
  int margin = nodes[0]->kind == SCL_VALUE_REDUCE ? (int)scl_node_margin(nodes[0]) : -1;
  size_t length = 1;
  for (size_t k = 1; k < count && length < SCL_PLAN_OUTPUTS; k++) {
    scl_node *node = nodes[k];
    if (!joins(node, domain, margin)) continue;
    if (node->kind == SCL_VALUE_REDUCE) margin = (int)scl_node_margin(node);
    nodes[k] = nodes[length];
    nodes[length++] = node;
  }
  return length;
}

/* Removes nodes that have a value, and those that no plan can compute, which are computed unless
 * only sources are wanted. */
static scl_status run_alone(scl_context *ctx, size_t *count, scl_node **nodes, bool sources) {
  size_t kept = 0;
  for (size_t k = 0; k < *count; k++) {
    scl_node *node = nodes[k];
    if (is_value(node)) continue;
    if (!takes_values(node) && has_elements(node)) {
      nodes[kept++] = node;
    } else if (sources) {
      continue;
    } else if (scl_node_is_call(node) || has_elements(node)) {
      SCL_TRY(scl_node_run_call(ctx, node));
    } else {
      SCL_TRY(scl_node_run_empty(ctx, node));
    }
  }
  *count = kept;
  return SCL_OK;
}

/* The caller holds the nodes. With `text`, what they need first is computed, and the sources of
 * their own kernels are appended. */
static scl_status eval_nodes(scl_context *ctx, size_t count, scl_node **nodes, char **text) {
  node_list open = {0};
  scl_status status = SCL_OK;
  const uint64_t stamp = scl_node_stamp();
  SCL_GO(scl_context_check(ctx));
  for (size_t k = 0; k < count; k++) {
    if (nodes[k]->seen == stamp) continue; /* once is enough */
    nodes[k]->seen = stamp;
    if (nodes[k]->placeholder) {
      SCL_GO(scl_fail_argument("x", "an argument of 'combine' has no value of its own"));
    }
    SCL_GO(append_held(&open, nodes[k]));
  }
  SCL_GO(compute_sources(ctx, open.count, open.node));
  {
    size_t left = open.count;
    scl_node **rest = malloc((left > 0 ? left : 1) * sizeof *rest);
    if (rest == NULL) SCL_GO(scl_fail_memory(left * sizeof *rest, 0, "an expression"));
    memcpy(rest, open.node, left * sizeof *rest);
    scl_node **at = rest;
    status = run_alone(ctx, &left, rest, text != NULL);
    while (status == SCL_OK && left > 0) {
      size_t length = gather_group(left, at);
      status = run_group(ctx, length, at, text);
      at += length;
      left -= length;
    }
    free(rest);
  }
done:
  release_list(&open);
  return status;
}

scl_status scl_node_force(scl_context *ctx, scl_node *node) {
  return eval_nodes(ctx, 1, &node, NULL);
}

/* ---- matrices ------------------------------------------------------------------------------- */

/* Gives a matrix the value of its node if that is a leaf now. */
static void adopt(scl_mat *x) {
  scl_node *node = scl_node_pending(x);
  if (node == NULL || node->kind != SCL_VALUE_DATA) return;
  const scl_block b = node->block;
  x->buffer = b.buffer != NULL ? scl_buffer_retain(b.buffer) : NULL;
  x->offset = b.offset;
  x->ld = b.ld;
  x->view = node->view;
  x->pending = NULL;
  scl_node_release(node);
}

scl_status scl_mat_force(scl_mat *a) {
  return a->pending == NULL ? SCL_OK : scl_expr_eval(1, &a);
}

scl_status scl_expr_eval(size_t count, scl_mat *const *x) {
  node_list open = {0};
  scl_status status = SCL_OK;
  for (size_t first = 0; first < count; first++) {
    scl_context *ctx = x[first]->ctx;
    const uint64_t stamp = scl_node_stamp();
    /* All matrices of one context at once; those of another context start a new round. */
    open.count = 0;
    for (size_t k = first; k < count; k++) {
      scl_node *node = scl_node_pending(x[k]);
      if (node == NULL || x[k]->ctx != ctx || node->seen == stamp) continue;
      node->seen = stamp;
      SCL_GO(append(&open, node));
    }
    if (open.count > 0) SCL_GO(eval_nodes(ctx, open.count, open.node, NULL));
    for (size_t k = first; k < count; k++) {
      if (x[k]->ctx == ctx) adopt(x[k]);
    }
  }
done:
  free(open.node);
  for (size_t k = 0; k < count; k++) adopt(x[k]);
  return status;
}

/* ---- facts ---------------------------------------------------------------------------------- */

scl_expr_facts scl_expr_about(const scl_mat *x) {
  scl_node *node = scl_node_pending(x);
  scl_expr_facts facts = {.pending = node != NULL && node->kind != SCL_VALUE_DATA};
  if (facts.pending) {
    facts.nodes = count_nodes(node, scl_node_stamp());
    facts.depth = node->depth;
  }
  return facts;
}

scl_status scl_expr_source(size_t count, scl_mat *const *x, char **out) {
  node_list open = {0};
  scl_status status = SCL_OK;
  char *text = calloc(1, 1);
  if (text == NULL) return scl_fail_memory(1, 0, "a kernel source");
  for (size_t k = 0; k < count; k++) {
    SCL_GO(scl_mat_same_context(x[0], x[k]));
    if (scl_expr_about(x[k]).pending) SCL_GO(append(&open, scl_node_pending(x[k])));
  }
  if (open.count > 0) SCL_GO(eval_nodes(x[0]->ctx, open.count, open.node, &text));
  *out = text;
  text = NULL;
done:
  free(text);
  free(open.node);
  return status;
}
