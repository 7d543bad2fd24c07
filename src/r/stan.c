/* .Call entries that read a Stan program.
 *
 *   r_stan_read(code, file, include_paths)   the program's text, its name for messages ("" for
 * none), folders: a list of blocks, each a list of statements or function definitions. A node is a
 *       list with `kind` and `line` first; stan/nodes.def says what else, stan/tree.h how.
 *   r_stan_refuse(code, file, include_paths, position, message)   raises an error about a position
 *       that a node of the program has.
 *   r_stan_names(tree, kind)   the names of all nodes of a kind, in a node or a list of nodes, as
 *       often as they occur. */
#include "r/entries.h"
#include "r/glue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stan/program.h"

/* Fields that are properties of the node itself. */
enum {
  NAME,
  TYPE,
  VALUE,
  OP,
  USER,
  FUN,
  BLOCK,
  DATA,
  TRUNCATED,
  DIST,
  VAR,
  PART,
  POSITION,
  PROPERTIES,
  CHILD,
  REST,
  END
};
static const char *const properties[PROPERTIES] = {"name", "type",  "value",   "op",        "user",
                                                   "fun",  "block", "data",    "truncated", "dist",
                                                   "var",  "i",     "position"};

enum { MOST_FIELDS = 12 };

typedef struct {
  const scl_stan_program *program;
  SEXP types; /* by id */
  SEXP kinds; /* a string each */
  SEXP names; /* of the lists of each kind */
  uint8_t field[SCL_STAN_KINDS][MOST_FIELDS];
  /* The last declaration, and its list: variables that are declared together share sizes and
   * constraint. */
  const scl_stan_node *declared;
  SEXP declaration;
} converter;

static SEXP convert(converter *c, const scl_stan_node *node);

static SEXP text_of(const char *text) {
  return Rf_ScalarString(Rf_mkCharCE(text, CE_UTF8));
}

/* ---- the fields of each kind ---------------------------------------------------------------- */

/* Nodes without a kind have no line either. */
static bool has_kind(unsigned kind) {
  return scl_stan_kind_names[kind][0] != '\0';
}

static void read_fields(converter *c, unsigned kind) {
  SEXP names = PROTECT(Rf_allocVector(STRSXP, MOST_FIELDS));
  R_xlen_t used = 0;
  unsigned count = 0;
  if (has_kind(kind) || kind == SCL_STAN_CONSTRAINT_NODE)
    SET_STRING_ELT(names, used++, Rf_mkChar("kind"));
  if (has_kind(kind)) SET_STRING_ELT(names, used++, Rf_mkChar("line"));
  for (const char *at = scl_stan_kind_fields[kind]; *at != '\0';) {
    const size_t length = strcspn(at, " ");
    const bool rest = at[length - 1] == '*';
    uint8_t field = rest ? REST : CHILD;
    for (uint8_t k = 0; k < PROPERTIES; k++) {
      if (strlen(properties[k]) == length && memcmp(properties[k], at, length) == 0) field = k;
    }
    c->field[kind][count++] = field;
    SET_STRING_ELT(names, used++, Rf_mkCharLen(at, (int)(length - rest)));
    at += length + (at[length] == ' ');
  }
  c->field[kind][count] = END;
  SET_VECTOR_ELT(c->names, kind, Rf_xlengthgets(names, used));
  SET_VECTOR_ELT(c->kinds, kind, Rf_mkString(scl_stan_kind_names[kind]));
  UNPROTECT(1);
}

/* ---- types ---------------------------------------------------------------------------------- */

static SEXP convert_type(converter *c, const scl_stan_type *type) {
  if (type == NULL) return R_NilValue;
  SEXP made = VECTOR_ELT(c->types, type->id);
  if (made != R_NilValue) return made;
  const char *plain[] = {"base", "depth", ""}, *tuple[] = {"base", "depth", "parts", ""};
  made = Rf_mkNamed(VECSXP, type->parts > 0 ? tuple : plain);
  SET_VECTOR_ELT(c->types, type->id, made);
  SET_VECTOR_ELT(made, 0, Rf_mkString(scl_stan_base_names[type->base]));
  SET_VECTOR_ELT(made, 1, Rf_ScalarInteger(type->depth));
  if (type->parts > 0) {
    SET_VECTOR_ELT(made, 2, Rf_allocVector(VECSXP, type->parts));
    for (unsigned k = 0; k < type->parts; k++) {
      SET_VECTOR_ELT(VECTOR_ELT(made, 2), k, convert_type(c, type->part[k]));
    }
  }
  return made;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static SEXP convert_value(const scl_stan_node *node) {
  if (node->kind == SCL_STAN_STRING_NODE) return text_of(node->name->text);
  if (node->type->base == SCL_STAN_INT) return Rf_ScalarInteger((int)node->value);
  return Rf_ScalarReal(node->value);
}

/* A name; of a sampling statement that of the function that it means. */
static SEXP convert_name(const scl_stan_node *node) {
  if (node->kind != SCL_STAN_SAMPLE_NODE) return text_of(node->name->text);
  const char *end = node->op == SCL_STAN_LPMF ? "_lpmf" : "_lpdf";
  const size_t size = node->name->length + strlen(end) + 1;
  char *text = R_alloc(size, 1);
  snprintf(text, size, "%s%s", node->name->text, end);
  return text_of(text);
}

static SEXP convert_property(converter *c, const scl_stan_node *node, uint8_t field) {
  switch (field) {
  case NAME:
    return convert_name(node);
  case DIST:
  case VAR:
    return text_of(node->name->text);
  case TYPE:
    return convert_type(c, node->type);
  case VALUE:
    return convert_value(node);
  case OP:
    return Rf_mkString(scl_stan_operator_names[node->op]);
  case USER:
    return Rf_ScalarLogical(node->user > 0);
  case FUN:
    return Rf_ScalarInteger((int)node->user);
  case BLOCK:
    return Rf_mkString(scl_stan_place_names[node->place]);
  case DATA:
    return Rf_ScalarLogical((node->flags & SCL_STAN_ONLY_DATA) != 0);
  case TRUNCATED:
    return Rf_ScalarLogical((node->flags & SCL_STAN_TRUNCATED) != 0);
  case POSITION:
    return Rf_ScalarInteger((int)node->position);
  default:
    return Rf_ScalarInteger((int)node->child[1]->value); /* the part of a tuple */
  }
}

/* The children from `first` on. */
static SEXP convert_rest(converter *c, const scl_stan_node *node, uint32_t first) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, node->count - first));
  for (uint32_t k = first; k < node->count; k++) {
    SET_VECTOR_ELT(list, k - first, convert(c, node->child[k]));
  }
  UNPROTECT(1);
  return list;
}

/* A child, which is the value `field` of the node's list. */
static SEXP convert_child(converter *c, const scl_stan_node *node, uint32_t child, R_xlen_t field) {
  const scl_stan_node *value = node->child[child];
  const bool shared = value != NULL && node->kind == SCL_STAN_DECLARATION_NODE &&
                      c->declared != NULL && c->declared->child[child] == value;
  return shared ? VECTOR_ELT(c->declaration, field) : convert(c, value);
}

/* ---- long chains, as one list: R cannot walk 10,000 lists in each other --------------------- */

/* Chains of more nodes than this. */
enum { LONG_CHAIN = 50 };

static R_xlen_t chain_length(const scl_stan_node *node) {
  R_xlen_t length = 0;
  for (; node != NULL; node = scl_stan_chained(node)) length++;
  return length;
}

/* kind "chain": ops and types, those of the results, from left to right; args: one more. */
static void convert_operations(converter *c, const scl_stan_node *node, R_xlen_t n, SEXP list) {
  SEXP ops = Rf_allocVector(STRSXP, n);
  SET_VECTOR_ELT(list, 3, ops);
  SEXP types = Rf_allocVector(VECSXP, n);
  SET_VECTOR_ELT(list, 4, types);
  SEXP args = Rf_allocVector(VECSXP, n + 1);
  SET_VECTOR_ELT(list, 5, args);
  while (n-- > 0) {
    SET_STRING_ELT(ops, n, Rf_mkChar(scl_stan_operator_names[node->op]));
    SET_VECTOR_ELT(types, n, convert_type(c, node->type));
    SET_VECTOR_ELT(args, n + 1, convert(c, node->child[1]));
    node = node->child[0];
  }
  SET_VECTOR_ELT(args, 0, convert(c, node));
}

/* kind "cond" with more than three args: tests and values in turn, and the last value; kind
 * "else_if": tests, bodies, lines, and no, what follows the last else. */
static void convert_choices(converter *c, const scl_stan_node *node, R_xlen_t n, SEXP list) {
  const bool statement = node->kind == SCL_STAN_IF_NODE;
  const R_xlen_t step = statement ? 1 : 2;
  SEXP tests = Rf_allocVector(VECSXP, statement ? n : 2 * n + 1), values = tests, lines = NULL;
  SET_VECTOR_ELT(list, statement ? 2 : 3, tests);
  if (statement) {
    values = Rf_allocVector(VECSXP, n);
    SET_VECTOR_ELT(list, 3, values);
    lines = Rf_allocVector(INTSXP, n);
    SET_VECTOR_ELT(list, 4, lines);
  }
  for (R_xlen_t k = 0; k < n; k++) {
    if (statement) INTEGER(lines)[k] = (int)scl_stan_line(c->program, node->position);
    SET_VECTOR_ELT(tests, k * step, convert(c, node->child[0]));
    SET_VECTOR_ELT(values, k * step + (statement ? 0 : 1), convert(c, node->child[1]));
    node = node->child[2];
  }
  SEXP last = convert(c, node);
  if (statement)
    SET_VECTOR_ELT(list, 5, last);
  else
    SET_VECTOR_ELT(tests, 2 * n, last);
}

static SEXP convert_chain(converter *c, const scl_stan_node *node, R_xlen_t n) {
  const char *operations[] = {"kind", "line", "type", "ops", "types", "args", ""};
  const char *choices[] = {"kind", "line", "type", "args", ""};
  const char *branches[] = {"kind", "line", "tests", "bodies", "lines", "no", ""};
  const bool operation = node->kind == SCL_STAN_OPERATION_NODE;
  const bool statement = node->kind == SCL_STAN_IF_NODE;
  SEXP list = PROTECT(Rf_mkNamed(VECSXP, operation ? operations : statement ? branches : choices));
  SET_VECTOR_ELT(list, 0, Rf_mkString(operation ? "chain" : statement ? "else_if" : "cond"));
  SET_VECTOR_ELT(list, 1, Rf_ScalarInteger((int)scl_stan_line(c->program, node->position)));
  if (!statement) SET_VECTOR_ELT(list, 2, convert_type(c, node->type));
  if (operation)
    convert_operations(c, node, n, list);
  else
    convert_choices(c, node, n, list);
  UNPROTECT(1);
  return list;
}

static SEXP convert(converter *c, const scl_stan_node *node) {
  if (node == NULL) return R_NilValue;
  if (node->kind == SCL_STAN_LIST_NODE) return convert_rest(c, node, 0);
  const R_xlen_t length = scl_stan_chained(node) != NULL ? chain_length(node) : 0;
  if (length > LONG_CHAIN) return convert_chain(c, node, length);
  SEXP names = VECTOR_ELT(c->names, node->kind);
  SEXP list = PROTECT(Rf_allocVector(VECSXP, XLENGTH(names)));
  Rf_setAttrib(list, R_NamesSymbol, names);
  R_xlen_t used = 0;
  uint32_t child = 0;
  if (has_kind(node->kind)) {
    SET_VECTOR_ELT(list, used++, VECTOR_ELT(c->kinds, node->kind));
    SET_VECTOR_ELT(list, used++, Rf_ScalarInteger((int)scl_stan_line(c->program, node->position)));
  } else if (node->kind == SCL_STAN_CONSTRAINT_NODE) {
    SET_VECTOR_ELT(list, used++, Rf_mkString(scl_stan_constraint_names[node->op]));
  }
  for (const uint8_t *field = c->field[node->kind]; *field != END; field++) {
    SEXP value = *field == REST    ? convert_rest(c, node, child)
                 : *field == CHILD ? convert_child(c, node, child++, used)
                                   : convert_property(c, node, *field);
    SET_VECTOR_ELT(list, used++, value);
  }
  if (node->kind == SCL_STAN_DECLARATION_NODE) {
    c->declared = node;
    c->declaration = list; /* which the caller puts into a list that is protected */
  }
  UNPROTECT(1);
  return list;
}

/* ---- the entry ------------------------------------------------------------------------------ */

static void release_program(SEXP owner) {
  scl_stan_free(R_ExternalPtrAddr(owner));
  R_ClearExternalPtr(owner);
}

static void finalize_program(SEXP owner) {
  r_finalized();
  release_program(owner);
}

static SEXP convert_program(const scl_stan_program *program) {
  converter c = {.program = program};
  const char *names[SCL_STAN_BLOCKS + 1];
  c.types = PROTECT(Rf_allocVector(VECSXP, scl_stan_type_count(program)));
  c.kinds = PROTECT(Rf_allocVector(VECSXP, SCL_STAN_KINDS));
  c.names = PROTECT(Rf_allocVector(VECSXP, SCL_STAN_KINDS));
  for (unsigned kind = 0; kind < SCL_STAN_KINDS; kind++) read_fields(&c, kind);
  for (int k = 0; k < SCL_STAN_BLOCKS; k++) names[k] = scl_stan_place_names[k];
  names[SCL_STAN_BLOCKS] = "";
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  for (int k = 0; k < SCL_STAN_BLOCKS; k++) {
    const scl_stan_node *block = scl_stan_block(program, (scl_stan_place)k);
    SET_VECTOR_ELT(result, k, block == NULL ? Rf_allocVector(VECSXP, 0) : convert(&c, block));
  }
  UNPROTECT(4);
  return result;
}

static scl_stan_input input_of(SEXP code, SEXP file, SEXP folders) {
  const R_xlen_t count = XLENGTH(folders);
  const char **paths = (const char **)R_alloc((size_t)count + 1, sizeof *paths);
  for (R_xlen_t k = 0; k < count; k++) paths[k] = Rf_translateChar(STRING_ELT(folders, k));
  SEXP text = STRING_ELT(code, 0);
  /* A string that is not marked as Latin-1 is taken as UTF-8. The reader refuses invalid UTF-8. */
  const char *bytes = Rf_getCharCE(text) == CE_LATIN1 ? Rf_translateCharUTF8(text) : CHAR(text);
  return (scl_stan_input){bytes, strlen(bytes), r_string(file), paths, (size_t)count};
}

SEXP r_stan_read(SEXP code, SEXP file, SEXP folders) {
  const scl_stan_input input = input_of(code, file, folders);
  SEXP owner = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  r_finalizer(owner, finalize_program);
  scl_stan_program *program = NULL;
  SEXP result = R_NilValue;
  const scl_status status = scl_stan_read(&input, &program);
  if (status == SCL_OK) {
    R_SetExternalPtrAddr(owner, program); /* R may jump from here on */
    result = convert_program(program);
  }
  PROTECT(result);
  release_program(owner);
  UNPROTECT(2);
  return r_return(status, result);
}

SEXP r_stan_refuse(SEXP code, SEXP file, SEXP folders, SEXP position, SEXP message) {
  const scl_stan_input input = input_of(code, file, folders);
  return r_return(scl_stan_refuse(&input, (uint32_t)Rf_asInteger(position), r_string(message)),
                  R_NilValue);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Counts the names, and puts them into `to` unless it is NULL. */
static R_xlen_t collect_names(SEXP tree, const char *kind, SEXP to, R_xlen_t used) {
  SEXP fields = Rf_getAttrib(tree, R_NamesSymbol);
  bool mine = false;
  for (R_xlen_t k = 0; k < XLENGTH(tree); k++) {
    SEXP x = VECTOR_ELT(tree, k);
    const char *field = fields == R_NilValue ? "" : CHAR(STRING_ELT(fields, k));
    const bool text = TYPEOF(x) == STRSXP && XLENGTH(x) == 1;
    if (text && strcmp(field, "kind") == 0) mine = strcmp(CHAR(STRING_ELT(x, 0)), kind) == 0;
    if (text && mine && strcmp(field, "name") == 0) {
      if (to != NULL) SET_STRING_ELT(to, used, STRING_ELT(x, 0));
      used++;
    }
    if (TYPEOF(x) == VECSXP && strcmp(field, "type") != 0) used = collect_names(x, kind, to, used);
  }
  return used;
}

SEXP r_stan_names(SEXP tree, SEXP kind) {
  if (TYPEOF(tree) != VECSXP) return Rf_allocVector(STRSXP, 0);
  const char *text = CHAR(STRING_ELT(kind, 0));
  SEXP names = PROTECT(Rf_allocVector(STRSXP, collect_names(tree, text, NULL, 0)));
  collect_names(tree, text, names, 0);
  UNPROTECT(1);
  return names;
}
