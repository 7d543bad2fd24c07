#include "stan/library.h"

#include <string.h>

/* ---- promotions ----------------------------------------------------------------------------- */

static int base_promotion(scl_stan_base from, scl_stan_base to) {
  if (from == to) return 0;
  if (from <= SCL_STAN_COMPLEX && to <= SCL_STAN_COMPLEX) return from < to ? (int)(to - from) : -1;
  const bool real = from >= SCL_STAN_VECTOR && from <= SCL_STAN_MATRIX;
  return real && to == from + 3 ? 1 : -1;
}

int scl_stan_promotion(const scl_stan_type *from, const scl_stan_type *to) {
  if (from == to) return 0;
  if (from->depth != to->depth) return -1;
  if (from->base != SCL_STAN_TUPLE || to->base != SCL_STAN_TUPLE) {
    return base_promotion(from->base, to->base);
  }
  if (from->parts != to->parts) return -1;
  int cost = 0;
  for (unsigned k = 0; k < from->parts; k++) {
    const int part = scl_stan_promotion(from->part[k], to->part[k]);
    if (part < 0) return -1;
    cost += part;
  }
  return cost;
}

const scl_stan_type *scl_stan_common(const scl_stan_type *a, const scl_stan_type *b) {
  if (scl_stan_promotion(a, b) >= 0) return b;
  return scl_stan_promotion(b, a) >= 0 ? a : NULL;
}

/* ---- patterns ------------------------------------------------------------------------------- */

static const char fixed[] = "irzvwmabd"; /* in the order of scl_stan_base */

static bool is_real(const scl_stan_type *type) {
  return type->base == SCL_STAN_INT || type->base == SCL_STAN_REAL ||
         (type->base >= SCL_STAN_VECTOR && type->base <= SCL_STAN_MATRIX);
}

static bool is_complex(const scl_stan_type *type) {
  return type->base == SCL_STAN_COMPLEX ||
         (type->base >= SCL_STAN_CVECTOR && type->base <= SCL_STAN_CMATRIX);
}

static bool is_number(const scl_stan_type *type) { /* an int or real, or an array of them */
  return type->base == SCL_STAN_INT || type->base == SCL_STAN_REAL;
}

static bool is_vector(const scl_stan_type *type) {
  return type->base == SCL_STAN_VECTOR || type->base == SCL_STAN_ROW;
}

static unsigned dimensions(const scl_stan_type *type) {
  static const uint8_t rank[SCL_STAN_BASES] = {
      [SCL_STAN_VECTOR] = 1,  [SCL_STAN_ROW] = 1,  [SCL_STAN_MATRIX] = 2,
      [SCL_STAN_CVECTOR] = 1, [SCL_STAN_CROW] = 1, [SCL_STAN_CMATRIX] = 2};
  return type->depth + rank[type->base];
}

/* One of the arguments that have a shape in common, scalars aside. */
static int fit_shape(char letter, const scl_stan_type *type, scl_stan_binding *binding) {
  const int cost = letter == 'B' && type->base == SCL_STAN_INT;
  const scl_stan_type *shape = binding->shape;
  if (dimensions(type) == 0) return cost;
  if (shape == NULL) {
    binding->shape = type;
    return cost;
  }
  const bool alike = shape->depth == type->depth &&
                     (shape->base == type->base || (is_number(shape) && is_number(type)));
  const bool integers = shape->base == SCL_STAN_INT || type->base == SCL_STAN_INT;
  if (!alike && !(integers && dimensions(shape) == dimensions(type))) return -1;
  if (shape->base == SCL_STAN_INT) binding->shape = type;
  return cost;
}

static int fit_array(const scl_stan_type *type, scl_stan_binding *binding) {
  if (type->depth == 0) return -1;
  if (binding->array == NULL) {
    binding->array = type;
    return 0;
  }
  const scl_stan_type *common = scl_stan_common(binding->array, type);
  if (common == NULL) return -1;
  const int cost = common != binding->array || common != type;
  binding->array = common;
  return cost;
}

static int fit_letter(char letter, const scl_stan_type *type, scl_stan_binding *binding) {
  const bool scalar = type->depth == 0;
  const int integer = type->base == SCL_STAN_INT;
  const scl_stan_base base = type->base;
  bool fits = false;
  switch (letter) {
  case 'E':
    binding->shape = dimensions(type) > 0 ? type : NULL;
    return is_real(type) ? integer : -1;
  case 'B':
    return is_real(type) ? fit_shape(letter, type, binding) : -1;
  case 'J':
  case 'N':
    return integer ? fit_shape(letter, type, binding) : -1;
  case 'D':
    return fit_array(type, binding);
  case 'C':
    fits = is_complex(type);
    break;
  case 'T':
    return (is_number(type) && type->depth <= 1) || (scalar && is_vector(type)) ? integer : -1;
  case 'I':
    fits = integer && type->depth <= 1;
    break;
  case 'F':
    fits = is_vector(type) && type->depth <= 1;
    break;
  case 'Z':
    fits = base == SCL_STAN_VECTOR && type->depth <= 1;
    break;
  case 'X':
    return type->depth == 1 && (is_number(type) || is_vector(type)) ? integer : -1;
  case 'L':
    return is_number(type) && type->depth <= 1 ? integer : -1;
  case 'H':
    fits = scalar && (base == SCL_STAN_MATRIX || base == SCL_STAN_ROW);
    break;
  case 'Y':
    fits = scalar && is_vector(type);
    break;
  case 'S':
    fits = (type->depth == 1 && is_number(type)) || (scalar && is_vector(type));
    break;
  case 'M':
    fits = scalar && base >= SCL_STAN_VECTOR && base <= SCL_STAN_MATRIX;
    break;
  case 'O':
    fits = scalar && base >= SCL_STAN_CVECTOR && base <= SCL_STAN_CMATRIX;
    break;
  case 'A':
    fits = !scalar;
    break;
  case 'G':
    fits = base <= SCL_STAN_TUPLE;
    break;
  default:
    break;
  }
  return fits ? 0 : -1;
}

int scl_stan_fit(const char **pattern, const scl_stan_type *type, scl_stan_binding *binding,
                 bool *data_only) {
  *data_only = **pattern == '!';
  if (*data_only) ++*pattern;
  unsigned depth = 0;
  for (; **pattern == '['; ++*pattern) depth++;
  const char letter = *(*pattern)++;
  const char *place = strchr(fixed, letter);
  if (binding->count == 0) binding->first = type;
  if (binding->count == 1) binding->second = type;
  binding->count++;
  binding->any_container = binding->any_container || dimensions(type) > 0;
  if (place == NULL) return fit_letter(letter, type, binding);
  if (type->depth != depth) return -1;
  return base_promotion(type->base, (scl_stan_base)(place - fixed));
}

/* ---- results -------------------------------------------------------------------------------- */

/* A type with reals in the place of integers. */
static scl_status with_reals(scl_stan_program *program, const scl_stan_type *type,
                             const scl_stan_type **out) {
  *out = type;
  if (type == NULL) return scl_stan_type_of(program, SCL_STAN_REAL, 0, out);
  if (type->base != SCL_STAN_INT) return SCL_OK;
  return scl_stan_type_of(program, SCL_STAN_REAL, type->depth, out);
}

static scl_status result_tuple(scl_stan_program *program, const char **pattern,
                               const scl_stan_binding *binding, const scl_stan_type **out) {
  const scl_stan_type *part[4];
  unsigned count = 0;
  while (**pattern != '.' && count < 4) {
    unsigned depth = 0;
    for (; **pattern == '['; ++*pattern) depth++;
    const char *place = strchr(fixed, *(*pattern)++);
    SCL_TRY(scl_stan_type_of(program, (scl_stan_base)(place - fixed), depth, &part[count]));
    count++;
  }
  ++*pattern;
  (void)binding;
  return scl_stan_type_with(program, SCL_STAN_TUPLE, 0, part, count, out);
}

scl_status scl_stan_result(scl_stan_program *program, const char **pattern,
                           const scl_stan_binding *binding, const scl_stan_type **out) {
  unsigned depth = 0;
  for (; **pattern == '['; ++*pattern) depth++;
  const char letter = *(*pattern)++;
  const scl_stan_type *first = binding->first;
  const char *place = strchr(fixed, letter);
  if (place != NULL) return scl_stan_type_of(program, (scl_stan_base)(place - fixed), depth, out);
  switch (letter) {
  case '1':
    *out = first;
    return SCL_OK;
  case '2':
    *out = binding->second;
    return SCL_OK;
  case 'D':
    *out = binding->array;
    return SCL_OK;
  case '#':
    return scl_stan_type_at(program, first, first->depth + binding->count - 1, out);
  case 't':
    return result_tuple(program, pattern, binding, out);
  case 'N':
    if (binding->shape == NULL) return scl_stan_type_of(program, SCL_STAN_INT, 0, out);
    *out = binding->shape;
    return SCL_OK;
  case 'P':
    return scl_stan_type_of(program,
                            first->base == SCL_STAN_COMPLEX ? SCL_STAN_REAL : first->base - 3u,
                            first->depth, out);
  default:
    return with_reals(program, binding->shape, out); /* E, B */
  }
}
