#include "stan/check.h"

/* The rules of types that operators.def names. */
typedef enum {
  LOGICAL,
  EQUAL,
  ORDER,
  SUM,
  PRODUCT,
  QUOTIENT,
  WHOLE,
  LEFT,
  ELEMENTS,
  POWERS,
  SIGN,
  TURN
} type_rule;

static const uint8_t rule_of[SCL_STAN_OPERATORS] = {
    LOGICAL,
#define SCL_STAN_OPERATOR(id, text, level, rule) rule,
#include "stan/operators.def"
#undef SCL_STAN_OPERATOR
};

static bool is_complex(scl_stan_base base) {
  return base == SCL_STAN_COMPLEX || base >= SCL_STAN_CVECTOR;
}

/* The form of a base: SCL_STAN_REAL for scalars, SCL_STAN_VECTOR, SCL_STAN_ROW, SCL_STAN_MATRIX. */
static scl_stan_base form_of(scl_stan_base base) {
  if (base <= SCL_STAN_COMPLEX) return SCL_STAN_REAL;
  return base >= SCL_STAN_CVECTOR ? base - 3u : base;
}

/* The base of a form, complex or not. */
static scl_stan_base base_of(scl_stan_base form, bool complex) {
  if (!complex) return form;
  return form == SCL_STAN_REAL ? SCL_STAN_COMPLEX : form + 3u;
}

static const scl_stan_base NONE = SCL_STAN_VOID;

/* The form of a product, or NONE. */
static scl_stan_base product(scl_stan_base a, scl_stan_base b) {
  if (a == SCL_STAN_REAL) return b;
  if (b == SCL_STAN_REAL) return a;
  if (a == SCL_STAN_VECTOR) return b == SCL_STAN_ROW ? SCL_STAN_MATRIX : NONE;
  if (b == SCL_STAN_ROW) return NONE;
  if (a == SCL_STAN_ROW) return b == SCL_STAN_VECTOR ? SCL_STAN_REAL : SCL_STAN_ROW;
  return b; /* matrix by vector or matrix */
}

/* The form of an operation, or NONE. */
static scl_stan_base combine(type_rule rule, scl_stan_base a, scl_stan_base b) {
  switch (rule) {
  case SUM:
  case ELEMENTS:
    if (a == SCL_STAN_REAL) return b;
    return b == SCL_STAN_REAL || a == b ? a : NONE;
  case PRODUCT:
    return product(a, b);
  case QUOTIENT:
    if (a == SCL_STAN_REAL || b == SCL_STAN_REAL) return a == SCL_STAN_REAL ? b : a;
    return b == SCL_STAN_MATRIX && (a == SCL_STAN_ROW || a == b) ? a : NONE;
  case LEFT:
    return a == SCL_STAN_MATRIX && (b == SCL_STAN_VECTOR || a == b) ? b : NONE;
  default:
    return NONE;
  }
}

/* Powers work by elements, on arrays too. */
static scl_status power(scl_stan_checker *c, const scl_stan_type *a, const scl_stan_type *b,
                        const scl_stan_type **out) {
  scl_stan_name *pow;
  SCL_TRY(scl_stan_intern(c->program, "pow", 3, &pow));
  const scl_stan_type *const types[2] = {a, b};
  scl_stan_arguments arguments = {.type = types, .count = 2};
  return scl_stan_library_result(c->program, pow, &arguments, NULL, out);
}

/* Whether operators that take scalars only can have these operands. */
static bool takes(type_rule rule, scl_stan_base a, scl_stan_base b) {
  const scl_stan_base higher = a > b ? a : b;
  if (rule == WHOLE) return higher == SCL_STAN_INT;
  return rule == EQUAL ? higher <= SCL_STAN_COMPLEX : higher <= SCL_STAN_REAL;
}

scl_status scl_stan_operate(scl_stan_checker *c, scl_stan_operator op, const scl_stan_type *a,
                            const scl_stan_type *b, const scl_stan_type **out) {
  const type_rule rule = rule_of[op];
  *out = NULL;
  if (a->base >= SCL_STAN_TUPLE || b->base >= SCL_STAN_TUPLE) return SCL_OK;
  if (rule == POWERS) return power(c, a, b, out);
  if (a->depth > 0 || b->depth > 0) return SCL_OK;
  if (rule <= ORDER || rule == WHOLE) {
    if (!takes(rule, a->base, b->base)) return SCL_OK;
    return scl_stan_type_of(c->program, SCL_STAN_INT, 0, out);
  }
  if (scl_stan_is_scalar(a) && scl_stan_is_scalar(b) && rule != LEFT) {
    *out = a->base > b->base ? a : b;
    return SCL_OK;
  }
  const bool complex = is_complex(a->base) || is_complex(b->base);
  const scl_stan_base form = combine(rule, form_of(a->base), form_of(b->base));
  if (form == NONE) return SCL_OK;
  return scl_stan_type_of(c->program, base_of(form, complex), 0, out);
}

static const char *advice(type_rule rule, const scl_stan_type *a, const scl_stan_type *b) {
  if (a->base >= SCL_STAN_TUPLE || b->base >= SCL_STAN_TUPLE) return "";
  if (a->depth > 0 || b->depth > 0) return ": operators take no arrays; to_vector() makes a vector";
  if (rule == PRODUCT && a->base == b->base) return ": '.*' is the product of elements";
  if (rule == WHOLE) return ": it takes integers";
  if (rule == QUOTIENT) return ": './' divides elements";
  if (rule == SUM && form_of(a->base) + form_of(b->base) == SCL_STAN_VECTOR + SCL_STAN_ROW) {
    return ": transpose one of them";
  }
  return rule <= ORDER ? ": it takes single numbers" : "";
}

static scl_status check_unary(scl_stan_checker *c, scl_stan_node *node) {
  static const uint8_t turned[SCL_STAN_BASES] = {
      [SCL_STAN_VECTOR] = SCL_STAN_ROW,    [SCL_STAN_ROW] = SCL_STAN_VECTOR,
      [SCL_STAN_MATRIX] = SCL_STAN_MATRIX, [SCL_STAN_CVECTOR] = SCL_STAN_CROW,
      [SCL_STAN_CROW] = SCL_STAN_CVECTOR,  [SCL_STAN_CMATRIX] = SCL_STAN_CMATRIX};
  const scl_stan_type *type = node->child[0]->type;
  if (node->op == SCL_STAN_OP_NOT && type->depth == 0 && type->base <= SCL_STAN_REAL) {
    return scl_stan_type_of(c->program, SCL_STAN_INT, 0, &node->type);
  }
  if (rule_of[node->op] == SIGN && type->base < SCL_STAN_TUPLE) {
    node->type = type;
    return SCL_OK;
  }
  if (node->op == SCL_STAN_OP_TRANSPOSE && type->depth == 0 && turned[type->base] != 0) {
    return scl_stan_type_of(c->program, turned[type->base], 0, &node->type);
  }
  char text[120];
  static const char *const signs[SCL_STAN_OPERATORS] = {[SCL_STAN_OP_NOT] = "!",
                                                        [SCL_STAN_OP_NEGATE] = "-",
                                                        [SCL_STAN_OP_PLUS] = "+",
                                                        [SCL_STAN_OP_TRANSPOSE] = "'"};
  return scl_stan_fail(c->program, node->position, "the operator %s takes no %s", signs[node->op],
                       scl_stan_type_text(type, text, sizeof text));
}

scl_status scl_stan_check_operation(scl_stan_checker *c, scl_stan_node *node) {
  if (node->count == 1) return check_unary(c, node);
  const scl_stan_type *a = node->child[0]->type, *b = node->child[1]->type;
  SCL_TRY(scl_stan_operate(c, node->op, a, b, &node->type));
  if (node->type != NULL) return SCL_OK;
  char left[100], right[100];
  return scl_stan_fail(c->program, node->position, "the operator '%s' takes no %s with %s%s",
                       scl_stan_operator_names[node->op], scl_stan_type_text(a, left, sizeof left),
                       scl_stan_type_text(b, right, sizeof right), advice(rule_of[node->op], a, b));
}
