/* Values are followed element by element. An element depends on chosen parameters, or not. A sum
 * does not couple the parameters of its terms with each other; a nonlinear function couples all
 * parameters that its operands depend on. So an element is *coupled* if some use of it is
 * nonlinear, or if it goes into a sum that is coupled: then all that it depends on is one block.
 * Values are visited twice: upwards to find the elements that depend on chosen parameters,
 * downwards to find the coupled ones. */
#include "program/blocks.h"

#include <stdlib.h>
#include <string.h>

enum { DEPENDS = 1, COUPLED = 2 };

typedef struct {
  const scl_tape *t;
  bool upwards;
  size_t others; /* stands for all elements that do not depend on chosen parameters */
  bool *live;    /* the output needs the value, which depends on chosen parameters */
  size_t *first; /* its first element; elements before are those of parameters, and of others */
  unsigned char *flag; /* of each element */
  uint32_t *parent;    /* of each element; of a root, itself */
} search;

typedef struct {
  int value;
  size_t from, length;
} range;

static size_t element_of(const search *w, int value, size_t i) {
  if (!w->live[value]) return w->others;
  return w->first[value] + (w->t->value[value].length == 1 ? 0 : i);
}

static bool has(const search *w, size_t element, int flag) {
  return (w->flag[element] & flag) != 0;
}

static size_t root_of(search *w, size_t element) {
  while (w->parent[element] != element) {
    w->parent[element] = w->parent[w->parent[element]];
    element = w->parent[element];
  }
  return element;
}

static void join(search *w, size_t a, size_t b) {
  const size_t x = root_of(w, a), y = root_of(w, b);
  w->parent[x < y ? y : x] = (uint32_t)(x < y ? x : y);
}

/* Element i of a value is made of element j of x. */
static void use(search *w, int value, size_t i, int x, size_t j, bool nonlinear) {
  const size_t to = element_of(w, value, i), from = element_of(w, x, j);
  if (!has(w, from, DEPENDS)) return;
  if (w->upwards) {
    w->flag[to] |= DEPENDS;
  } else if (nonlinear || has(w, to, COUPLED)) {
    w->flag[from] |= COUPLED;
    join(w, to, from);
  }
}

/* Each element of `to` is made of all elements of `from`. */
static void use_all(search *w, const range *to, int tos, const range *from, int froms,
                    bool nonlinear) {
  size_t one = 0;
  bool any = false, couple = nonlinear;
  for (int k = 0; k < froms; k++) {
    for (size_t i = 0; i < from[k].length; i++) {
      any = any || has(w, element_of(w, from[k].value, from[k].from + i), DEPENDS);
    }
  }
  if (!any) return;
  for (int k = 0; k < tos; k++) {
    for (size_t i = 0; i < to[k].length; i++) {
      one = element_of(w, to[k].value, to[k].from + i);
      if (w->upwards) w->flag[one] |= DEPENDS;
      couple = couple || has(w, one, COUPLED);
    }
  }
  for (int pass = 0; pass < 2 && couple && !w->upwards; pass++) {
    const range *r = pass == 0 ? to : from;
    for (int k = 0; k < (pass == 0 ? tos : froms); k++) {
      for (size_t i = 0; i < r[k].length; i++) {
        const size_t element = element_of(w, r[k].value, r[k].from + i);
        if (!has(w, element, DEPENDS)) continue;
        w->flag[element] |= COUPLED;
        join(w, one, element);
      }
    }
  }
}

/* Whether the number is a zero, whatever the parameters are. */
static bool is_zero(const search *w, int x, size_t i) {
  const scl_value *v = &w->t->value[x];
  if (v->kind == SCL_VALUE_NUMBER) return v->number == 0.0;
  return v->kind == SCL_VALUE_DATA && w->t->data[v->at[0]].numbers[v->length == 1 ? 0 : i] == 0.0;
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static int operand_of(const search *w, int value, int k) {
  return scl_tape_operand(w->t, value, k);
}

static void use_apply(search *w, int value) {
  const scl_value *v = &w->t->value[value];
  int x[3] = {0, 0, 0};
  for (int k = 0; k < v->operands; k++) x[k] = operand_of(w, value, k);
  for (size_t i = 0; i < v->length; i++) {
    bool depends[3] = {false, false, false}, nonlinear = true;
    for (int k = 0; k < v->operands; k++) depends[k] = has(w, element_of(w, x[k], i), DEPENDS);
    if (v->op == SCL_OP_MUL && (is_zero(w, x[0], i) || is_zero(w, x[1], i))) continue;
    if (v->op == SCL_OP_ADD || v->op == SCL_OP_SUB || v->op == SCL_OP_NEG) nonlinear = false;
    if (v->op == SCL_OP_MUL) nonlinear = depends[0] && depends[1];
    if (v->op == SCL_OP_DIV) nonlinear = depends[1];
    if (v->op == SCL_OP_IFELSE) nonlinear = depends[0];
    for (int k = 0; k < v->operands; k++) use(w, value, i, x[k], i, nonlinear);
  }
}

static void use_view(search *w, int value) {
  const scl_value *v = &w->t->value[value];
  const int x = operand_of(w, value, 0);
  size_t m, n;
  scl_value_view_shape(v, &m, &n);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      use(w, value, i + j * m, x, scl_value_view_element(v, i, j), false);
    }
  }
}

static void use_reduce(search *w, int value) {
  const scl_value *v = &w->t->value[value];
  const size_t m = v->at[0], n = v->at[1], margin = v->at[2];
  const int x = operand_of(w, value, 0);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      const size_t to = margin == SCL_TOTAL ? 0 : margin == SCL_BY_ROW ? i : j;
      use(w, value, to, x, i + j * m, v->op != SCL_REDUCE_SUM);
    }
  }
}

static void use_moved(search *w, int value) {
  const scl_value *v = &w->t->value[value];
  if (v->kind == SCL_VALUE_CONCAT) {
    size_t at = 0;
    for (int k = 0; k < v->operands; k++) {
      const int x = operand_of(w, value, k);
      const size_t length = scl_tape_length(w->t, x);
      for (size_t i = 0; i < length; i++) use(w, value, at++, x, i, false);
    }
    return;
  }
  const scl_tape_data *index = &w->t->data[v->at[0]];
  const bool gather = v->kind == SCL_VALUE_GATHER;
  for (size_t i = 0; i < index->length; i++) {
    const size_t there = (size_t)index->numbers[i];
    use(w, value, gather ? i : there, operand_of(w, value, 0), gather ? there : i, false);
  }
}

static void use_product(search *w, int value) {
  const size_t *at = w->t->value[value].at, m = at[0], inner = at[1], n = at[2];
  const int a = operand_of(w, value, 0), b = operand_of(w, value, 1);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      for (size_t l = 0; l < inner; l++) {
        const size_t p = at[3] != 0 ? l + i * inner : i + l * m;
        const size_t q = at[4] != 0 ? j + l * n : l + j * inner;
        if (is_zero(w, a, p) || is_zero(w, b, q)) continue;
        const size_t x = element_of(w, a, p), y = element_of(w, b, q);
        if (!w->upwards && has(w, x, DEPENDS) && has(w, y, DEPENDS)) {
          w->flag[x] |= COUPLED;
          w->flag[y] |= COUPLED;
          join(w, x, y);
        }
        use(w, value, i + j * m, a, p, false);
        use(w, value, i + j * m, b, q, false);
      }
    }
  }
}

/* Columns of x, of m numbers each, are separate; everything else is shared. */
static void use_columns(search *w, int value, int x, size_t m, size_t n) {
  for (size_t j = 0; j < n; j++) {
    const range to = {value, j * m, m}, from = {x, j * m, m};
    use_all(w, &to, 1, &from, 1, false);
  }
}

static void use_everything(search *w, int value) {
  const int operands = w->t->value[value].operands;
  const range to = {value, 0, scl_tape_length(w->t, value)};
  range from[SCL_SCAN_PORTS];
  for (int k = 0; k < operands; k++) {
    const int x = operand_of(w, value, k);
    from[k] = (range){x, 0, scl_tape_length(w->t, x)};
  }
  use_all(w, &to, 1, from, operands, true);
}

static void use_solve(search *w, int value) {
  const size_t *at = w->t->value[value].at;
  if (w->live[operand_of(w, value, 0)]) {
    use_everything(w, value);
  } else {
    use_columns(w, value, operand_of(w, value, 1), at[0], at[1]);
  }
}

/* Sequences are separate, except for shared inputs. */
static void use_scan(search *w, int value) {
  const scl_value *v = &w->t->value[value];
  const scl_scan_shape *s = &w->t->body[v->at[0]]->shape;
  const int inputs = scl_scan_first(s, SCL_SCAN_SUM), ports = scl_scan_first(s, SCL_SCAN_ROLES);
  const size_t steps = v->at[1];
  range to[2 * SCL_SCAN_PORTS], from[SCL_SCAN_PORTS];
  for (int k = 0; k < inputs; k++) {
    if (s->port[k].shared && w->live[operand_of(w, value, k)]) {
      use_everything(w, value);
      return;
    }
  }
  for (size_t b = 0; b < v->at[2]; b++) {
    const int x = s->ports[SCL_SCAN_STATE], fixed = scl_scan_first(s, SCL_SCAN_FIXED);
    int tos = 0, froms = 0;
    size_t element = 0;
    for (int k = 0; k < inputs; k++) {
      const size_t length = s->port[k].length * (k >= x && k < fixed ? steps : 1);
      if (!s->port[k].shared) from[froms++] = (range){operand_of(w, value, k), b * length, length};
    }
    for (int k = 0; k < ports; k++) { /* states, sums, outs */
      if (k >= x && k < inputs) continue;
      const size_t length = s->port[k].length * (k >= scl_scan_first(s, SCL_SCAN_OUT) ? steps : 1);
      to[tos++] = (range){value, element + b * length, length};
      element += length * v->at[2];
    }
    use_all(w, to, tos, from, froms, true);
  }
}

static void use_parameter(search *w, int value) {
  const scl_value *v = &w->t->value[value];
  for (size_t i = 0; i < v->length; i++) {
    const size_t element = w->first[value] + i;
    w->flag[element] |= w->flag[v->at[0] + i] & DEPENDS;
    join(w, element, v->at[0] + i);
  }
}

static void use_cumsum(search *w, int value) {
  const size_t *at = w->t->value[value].at;
  use_columns(w, value, operand_of(w, value, 0), at[0], at[1]);
}

static void (*const uses[SCL_VALUE_KINDS])(search *, int) = {
    [SCL_VALUE_PARAMETER] = use_parameter, [SCL_VALUE_APPLY] = use_apply,
    [SCL_VALUE_BROADCAST] = use_view,      [SCL_VALUE_TRANSPOSE] = use_view,
    [SCL_VALUE_PART] = use_view,           [SCL_VALUE_REDUCE] = use_reduce,
    [SCL_VALUE_GATHER] = use_moved,        [SCL_VALUE_SCATTER] = use_moved,
    [SCL_VALUE_CONCAT] = use_moved,        [SCL_VALUE_MATMUL] = use_product,
    [SCL_VALUE_CUMSUM] = use_cumsum,       [SCL_VALUE_TRI_SOLVE] = use_solve,
    [SCL_VALUE_LU_SOLVE] = use_solve,      [SCL_VALUE_SCAN] = use_scan,
};

static void use_value(search *w, int value) {
  const scl_value *v = &w->t->value[value];
  if (uses[v->kind] != NULL) {
    uses[v->kind](w, value);
  } else if (v->operands > 0) { /* factors and the like: they have few */
    use_everything(w, value);
  }
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Whether a value depends on chosen parameters, by its operands. */
static bool is_active(const search *w, int value, const bool *active, const unsigned char *chosen) {
  const scl_value *v = &w->t->value[value];
  for (size_t i = 0; v->kind == SCL_VALUE_PARAMETER && i < v->length; i++) {
    if (chosen[v->at[0] + i]) return true;
  }
  for (int k = 0; k < v->operands; k++) {
    if (active[operand_of(w, value, k)]) return true;
  }
  return false;
}

static scl_status find_live(search *w, int output, const unsigned char *chosen) {
  const size_t values = (size_t)w->t->values;
  w->live = calloc(values + 1, sizeof *w->live);
  bool *active = calloc(values + 1, sizeof *active);
  if (w->live != NULL && active != NULL) {
    for (int v = 0; v <= output; v++) active[v] = is_active(w, v, active, chosen);
    w->live[output] = active[output];
    for (int v = output; v >= 0; v--) {
      for (int k = 0; w->live[v] && k < w->t->value[v].operands; k++) {
        const int x = operand_of(w, v, k);
        w->live[x] = active[x];
      }
    }
  }
  const bool failed = w->live == NULL || active == NULL;
  free(active);
  return failed ? scl_fail_memory(values, 0, "a program") : SCL_OK;
}

static scl_status begin(search *w, int output, size_t parameters, const unsigned char *chosen) {
  const size_t values = (size_t)w->t->values;
  size_t elements = parameters + 1;
  w->others = parameters;
  SCL_TRY(find_live(w, output, chosen));
  w->first = malloc((values + 1) * sizeof *w->first);
  if (w->first == NULL) return scl_fail_memory(values * sizeof *w->first, 0, "a program");
  for (int v = 0; v <= output; v++) {
    w->first[v] = elements;
    if (w->live[v]) elements += scl_tape_length(w->t, v);
  }
  w->flag = elements < UINT32_MAX ? calloc(elements, 1) : NULL;
  w->parent = w->flag != NULL ? malloc(elements * sizeof *w->parent) : NULL;
  if (w->parent == NULL) return scl_fail_memory(elements * sizeof *w->parent, 0, "a program");
  for (size_t i = 0; i < elements; i++) w->parent[i] = (uint32_t)i;
  for (size_t i = 0; i < parameters; i++) w->flag[i] = chosen[i] ? DEPENDS : 0;
  return SCL_OK;
}

/* Roots are the first elements of their blocks. */
static void number_blocks(search *w, size_t parameters, const unsigned char *chosen, int *block) {
  int blocks = 0;
  for (size_t i = 0; i < parameters; i++) {
    const size_t root = chosen[i] ? root_of(w, i) : i;
    block[i] = !chosen[i] ? -1 : root == i ? blocks++ : block[root];
  }
}

scl_status scl_tape_blocks(const scl_tape *t, int output, size_t parameters,
                           const unsigned char *chosen, int *block) {
  search w = {.t = t, .upwards = true};
  const scl_status status = begin(&w, output, parameters, chosen);
  for (int v = 0; v <= output && status == SCL_OK; v++) {
    if (w.live[v]) use_value(&w, v);
  }
  w.upwards = false;
  for (int v = output; v >= 0 && status == SCL_OK; v--) {
    if (w.live[v]) use_value(&w, v);
  }
  if (status == SCL_OK) number_blocks(&w, parameters, chosen, block);
  free(w.live);
  free(w.first);
  free(w.flag);
  free(w.parent);
  return status;
}
