#include "stan/check.h"

/* The type of a vector or matrix with a single index; SCL_STAN_VOID: it cannot be indexed. */
static scl_stan_base element_of(scl_stan_base base) {
  switch (base) {
  case SCL_STAN_VECTOR:
  case SCL_STAN_ROW:
    return SCL_STAN_REAL;
  case SCL_STAN_MATRIX:
    return SCL_STAN_ROW;
  case SCL_STAN_CVECTOR:
  case SCL_STAN_CROW:
    return SCL_STAN_COMPLEX;
  case SCL_STAN_CMATRIX:
    return SCL_STAN_CROW;
  default:
    return SCL_STAN_VOID;
  }
}

static bool is_matrix(scl_stan_base base) {
  return base == SCL_STAN_MATRIX || base == SCL_STAN_CMATRIX;
}

/* The value after the indices read so far: an array's dimensions are indexed first, then those of
 * the vector or matrix. */
typedef struct {
  unsigned left, kept; /* dimensions of the array: not yet indexed, kept by their index */
  scl_stan_base base;
  bool in_matrix,
      row_kept; /* the row of a matrix is indexed, the column not; several rows are kept */
  bool done;
} state;

/* SCL_E_STAN if there is nothing left to index. */
static scl_status apply(scl_stan_checker *c, const scl_stan_node *node, const scl_stan_node *index,
                        state *s) {
  const bool single = index->kind == SCL_STAN_SINGLE_NODE;
  if (s->left > 0) {
    s->left--;
    s->kept += !single;
    return SCL_OK;
  }
  if (s->in_matrix) { /* the column */
    s->in_matrix = false;
    s->done = true;
    const bool complex = s->base >= SCL_STAN_CVECTOR;
    if (single)
      s->base = s->row_kept ? (complex ? SCL_STAN_CVECTOR : SCL_STAN_VECTOR)
                            : (complex ? SCL_STAN_COMPLEX : SCL_STAN_REAL);
    return SCL_OK;
  }
  const scl_stan_base element = element_of(s->base);
  if (element == SCL_STAN_VOID || s->done) {
    char text[120];
    return scl_stan_fail(c->program, index->position, "there are too many indices for %s",
                         scl_stan_type_text(node->child[0]->type, text, sizeof text));
  }
  s->in_matrix = is_matrix(s->base);
  s->done = !s->in_matrix;
  s->row_kept = !single;
  if (single) s->base = element;
  return SCL_OK;
}

static scl_status check_one(scl_stan_checker *c, scl_stan_node *index) {
  if (index->kind == SCL_STAN_RANGE_NODE) {
    for (uint32_t k = 0; k < 2; k++) {
      if (index->child[k] == NULL) continue;
      SCL_TRY(scl_stan_check_integer(c, index->child[k], "a bound of an index"));
    }
  }
  if (index->kind != SCL_STAN_SINGLE_NODE) return SCL_OK;
  const scl_stan_node *value = index->child[0];
  if (value->type->base == SCL_STAN_INT && value->type->depth == 1) {
    index->kind = SCL_STAN_MULTI_NODE;
  } else if (!scl_stan_is_int(value->type)) {
    return scl_stan_fail_type(c, value, "an index", "int or array[] int");
  }
  return SCL_OK;
}

scl_status scl_stan_check_index(scl_stan_checker *c, scl_stan_node *node) {
  const scl_stan_type *type = node->child[0]->type;
  state s = {.left = type->depth, .base = type->base};
  for (uint32_t k = 1; k < node->count; k++) {
    scl_stan_node *index = node->child[k];
    SCL_TRY(check_one(c, index));
    SCL_TRY(apply(c, node, index, &s));
  }
  return scl_stan_type_with(c->program, s.base, s.left + s.kept, type->part, type->parts,
                            &node->type);
}

scl_status scl_stan_check_part(scl_stan_checker *c, scl_stan_node *node) {
  const scl_stan_type *type = node->child[0]->type;
  const double number = node->child[1]->value;
  if (type->base != SCL_STAN_TUPLE || type->depth > 0) {
    char text[120];
    return scl_stan_fail(c->program, node->position, "'.%.0f' takes a part of a tuple, not of %s",
                         number, scl_stan_type_text(type, text, sizeof text));
  }
  if (number < 1 || number > type->parts) {
    return scl_stan_fail(c->program, node->position, "this tuple has %u parts, not a part %.0f",
                         type->parts, number);
  }
  node->type = type->part[(unsigned)number - 1];
  return SCL_OK;
}
