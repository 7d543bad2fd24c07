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

scl_status scl_stan_common(scl_stan_program *program, const scl_stan_type *a,
                           const scl_stan_type *b, const scl_stan_type **out) {
  *out = scl_stan_promotion(a, b) >= 0 ? b : scl_stan_promotion(b, a) >= 0 ? a : NULL;
  if (*out != NULL || a->parts == 0 || a->parts != b->parts || a->depth != b->depth) return SCL_OK;
  const scl_stan_type **part; /* tuples: each part by itself */
  SCL_TRY(scl_stan_alloc(program, a->parts * sizeof *part, &part));
  for (unsigned k = 0; k < a->parts; k++) {
    SCL_TRY(scl_stan_common(program, a->part[k], b->part[k], &part[k]));
    if (part[k] == NULL) return SCL_OK;
  }
  return scl_stan_type_with(program, SCL_STAN_TUPLE, a->depth, part, a->parts, out);
}

/* ---- patterns ------------------------------------------------------------------------------- */

static const char fixed[] = "irzvwmabd"; /* in the order of scl_stan_base */

static bool is_real(const scl_stan_type *type) {
  return type->base == SCL_STAN_INT || type->base == SCL_STAN_REAL ||
         (type->base >= SCL_STAN_VECTOR && type->base <= SCL_STAN_MATRIX);
}

static bool is_number(const scl_stan_type *type) { /* an int or real, or an array of them */
  return type->base == SCL_STAN_INT || type->base == SCL_STAN_REAL;
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
  if (binding->array == type) return 0;
  if (scl_stan_promotion(binding->array, type) >= 0) binding->array = type;
  return scl_stan_promotion(type, binding->array) >= 0 ? 1 : -1;
}

/* Sets of bases. */
enum {
  NUMBERS = 1 << SCL_STAN_INT | 1 << SCL_STAN_REAL,
  COLUMN = 1 << SCL_STAN_VECTOR,
  VECTORS = COLUMN | 1 << SCL_STAN_ROW,
  CONTAINERS = VECTORS | 1 << SCL_STAN_MATRIX,
  COMPLEX = CONTAINERS << 3,
  ANY = (1 << (SCL_STAN_TUPLE + 1)) - 1
};

/* Letters that mean a set of types: bases alone, in arrays of one dimension, and of more; the cost
 * of integers. */
static const struct {
  char letter;
  uint16_t alone, array, deeper;
  int integers;
} sets[] = {{'C', COMPLEX | 1 << SCL_STAN_COMPLEX, COMPLEX | 1 << SCL_STAN_COMPLEX,
             COMPLEX | 1 << SCL_STAN_COMPLEX, 0},
            {'T', NUMBERS | VECTORS, NUMBERS, 0, 1},
            {'I', 1 << SCL_STAN_INT, 1 << SCL_STAN_INT, 0, 0},
            {'F', VECTORS, VECTORS, 0, 0},
            {'Z', COLUMN, COLUMN, 0, 0},
            {'X', 0, NUMBERS | VECTORS, 0, 1},
            {'L', NUMBERS, NUMBERS, 0, 1},
            {'H', 1 << SCL_STAN_MATRIX | 1 << SCL_STAN_ROW, 0, 0, 0},
            {'Y', VECTORS, 0, 0, 0},
            {'S', VECTORS, NUMBERS, 0, 0},
            {'M', CONTAINERS, 0, 0, 0},
            {'O', COMPLEX, 0, 0, 0},
            {'A', 0, ANY, ANY, 0},
            {'Q', 0, NUMBERS | CONTAINERS, NUMBERS | CONTAINERS, 0},
            {'G', ANY, ANY, ANY, 0}};

static int fit_letter(char letter, const scl_stan_type *type, scl_stan_binding *binding) {
  const int integer = type->base == SCL_STAN_INT;
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
  default:
    break;
  }
  for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
    if (sets[k].letter != letter) continue;
    const unsigned set = type->depth == 0   ? sets[k].alone
                         : type->depth == 1 ? sets[k].array
                                            : sets[k].deeper;
    return set >> type->base & 1 ? integer * sets[k].integers : -1;
  }
  return -1;
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
                               const scl_stan_type **out) {
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
    return result_tuple(program, pattern, out);
  case 'N':
    if (binding->shape == NULL) return scl_stan_type_of(program, SCL_STAN_INT, 0, out);
    *out = binding->shape;
    return SCL_OK;
  case 'P':
    return scl_stan_type_of(program,
                            first->base == SCL_STAN_COMPLEX ? SCL_STAN_REAL : first->base - 3u,
                            first->depth, out);
  case 'W':
    if (binding->shape == NULL) return scl_stan_type_of(program, SCL_STAN_COMPLEX, 0, out);
    return scl_stan_type_of(
        program, is_number(binding->shape) ? SCL_STAN_COMPLEX : binding->shape->base + 3u,
        binding->shape->depth, out);
  default:
    return with_reals(program, binding->shape, out); /* E, B */
  }
}
