/* The reader of Stan programs: what it reads, and the tree that it makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "stan_read.h"
#include "test.h"

const char *const stan_programs[] = {"types",     "constraints",   "indexing", "control",
                                     "functions", "old",           "complex",  "tuples",
                                     "higher",    "distributions", NULL};

scl_status stan_read(const char *text, size_t length, scl_stan_program **out) {
  const char *const folders[] = {"stan/include"};
  return scl_stan_read(&(scl_stan_input){text, length, "", folders, 1}, out);
}

char *stan_text(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    printf("no file %s\n", path);
    exit(2);
  }
  char *text = test_alloc(1 << 16);
  *length = fread(text, 1, (1 << 16) - 1, file);
  text[*length] = '\0';
  fclose(file);
  return text;
}

const scl_stan_node *stan_last(const scl_stan_program *program, scl_stan_place block) {
  const scl_stan_node *list = scl_stan_block(program, block);
  return list->child[list->count - 1];
}

/* ---- trees ---------------------------------------------------------------------------------- */

static char tree[2000];

static void add(const char *text) {
  strncat(tree, text, sizeof tree - strlen(tree) - 1);
}

/* The tree of an expression: "(+ a (* b c))". */
static void write_tree(const scl_stan_node *node) {
  char number[40];
  if (node == NULL) {
    add("-");
    return;
  }
  switch (node->kind) {
  case SCL_STAN_NUMBER_NODE:
  case SCL_STAN_IMAGINARY_NODE:
    snprintf(number, sizeof number, "%.17g%s", node->value,
             node->kind == SCL_STAN_IMAGINARY_NODE ? "i" : "");
    add(number);
    return;
  case SCL_STAN_VARIABLE_NODE:
  case SCL_STAN_STRING_NODE:
    add(node->name->text);
    return;
  default:
    break;
  }
  add("(");
  add(node->kind == SCL_STAN_OPERATION_NODE ? scl_stan_operator_names[node->op]
      : node->kind == SCL_STAN_CALL_NODE    ? node->name->text
                                            : scl_stan_kind_names[node->kind]);
  for (uint32_t k = 0; k < node->count; k++) {
    add(" ");
    write_tree(node->child[k]);
  }
  add(")");
}

static const char given[] =
    "functions { real f(real x) { return x; } }\n"
    "data { int i; int j; real a; real b; real c; vector[2] v; row_vector[2] r; matrix[2, 2] m; "
    "array[2] int k; array[2, 2] real g; array[2] vector[2] w; complex z; complex_vector[2] cv; "
    "complex_matrix[2, 2] cm; tuple(int, vector[2]) t; array[3] tuple(real, matrix[2, 2]) u; }\n"
    "model { print(%s); }\n";

/* Checks the tree of an expression, or its type. */
static void check_expression(const char *text, const char *want, bool type) {
  char program_text[2000];
  scl_stan_program *program;
  const int length = snprintf(program_text, sizeof program_text, given, text);
  REQUIRE_OK(stan_read(program_text, (size_t)length, &program));
  const scl_stan_node *node = stan_last(program, SCL_STAN_MODEL)->child[0];
  tree[0] = '\0';
  if (type) {
    snprintf(tree, sizeof tree, "%s %d", scl_stan_base_names[node->type->base], node->type->depth);
  } else {
    write_tree(node);
  }
  CHECK(strcmp(tree, want) == 0);
  if (strcmp(tree, want) != 0) printf("       %s: %s, not %s\n", text, tree, want);
  scl_stan_free(program);
}

static void check_trees(void) {
  static const char *const trees[][2] = {
      {"a + b * c", "(+ a (* b c))"},
      {"a - b - c", "(- (- a b) c)"},
      {"a / b * c", "(* (/ a b) c)"},
      {"a ^ b ^ c", "(^ a (^ b c))"},
      {"-a ^ b", "(neg (^ a b))"},
      {"a ^ -b ^ c", "(^ a (neg (^ b c)))"},
      {"-a * b", "(* (neg a) b)"},
      {"!a == b", "(== (not a) b)"},
      {"- -a", "(neg (neg a))"},
      {"i %/% j * i % j", "(% (* (%/% i j) i) j)"},
      {"i * i %/% j", "(* i (%/% i j))"},
      {"m \\ v * a", "(* (\\ m v) a)"},
      {"a < b == b > c", "(== (< a b) (> b c))"},
      {"a == b && b != c || i", "(|| (&& (== a b) (!= b c)) i)"},
      {"i || j && i", "(|| i (&& j i))"},
      {"i ? a : j ? b : c", "(cond i a (cond j b c))"},
      {"i > 1 ? a + 1 : b", "(cond (> i 1) (+ a 1) b)"},
      {"m' * v", "(* (t m) v)"},
      {"-m[1]'", "(neg (t (index m (single 1))))"},
      {"v .* v ./ v", "(./ (.* v v) v)"},
      {"v .^ 2", "(.^ v 2)"},
      {"v .^ a .^ b", "(.^ v (.^ a b))"},
      {"a * v .* v", "(.* (* a v) v)"},
      {"(a + b) * c", "(* (+ a b) c)"},
      {"w[1][2] + w[k, 1 : 2][1, 1]",
       "(+ (index (index w (single 1)) (single 2)) (index (index w (multi k) (range 1 2)) "
       "(single 1) (single 1)))"},
      {"m[ : , 2 : ]", "(index m (all) (range 2 -))"},
      {"m[ : 2, i ? 1 : 2]", "(index m (range - 2) (single (cond i 1 2)))"},
      {"v[]", "(index v (all))"},
      {"t.2[1]", "(index (tuple_get t 2) (single 1))"},
      {"u[1].2", "(tuple_get (index u (single 1)) 2)"},
      {"normal_lpdf(a | b, c)", "(normal_lpdf a b c)"},
      {"{{1, 2}, {3, 4}}", "(array (array 1 2) (array 3 4))"},
      {"[[1, a], [b, 2.5]]", "(rowvec (rowvec 1 a) (rowvec b 2.5))"},
      {"(1, (a, 2i))", "(tuple 1 (tuple a 2i))"},
      {"1.5e3 + .5 + 2. + 1e-2 + 1_000", "(+ (+ (+ (+ 1500 0.5) 2) 0.01) 1000)"},
      {"f(f(a))", "(f (f a))"},
      {"\"\xc3\xa9 # // /*\"", "\xc3\xa9 # // /*"},
      {"a /* one */ + // two\n b # three\n", "(+ a b)"}};
  for (size_t k = 0; k < sizeof trees / sizeof *trees; k++) {
    check_expression(trees[k][0], trees[k][1], false);
  }
}

static void check_types(void) {
  static const char *const types[][2] = {
#define STAN_TYPE(expression, type) {expression, type},
#include "stan_types.def"
#undef STAN_TYPE
  };
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    check_expression(types[k][0], types[k][1], true);
  }
}

/* ---- programs ------------------------------------------------------------------------------- */

static void check_programs(void) {
  for (size_t k = 0; stan_programs[k] != NULL; k++) {
    char path[80];
    size_t length;
    scl_stan_program *program = NULL;
    snprintf(path, sizeof path, "stan/%s.stan", stan_programs[k]);
    char *text = stan_text(path, &length);
    CHECK_OK(stan_read(text, length, &program));
    if (program == NULL) printf("       %s:%d\n", path, scl_fault_last()->line);
    scl_stan_free(program);
    free(text);
  }
}

/* What calls and sampling statements mean: functions of the program by their number. */
static void check_resolved(void) {
  static const char text[] = "functions {\n"
                             "  real g_lpdf(real x);\n"
                             "  real h(int x) { return x; }\n"
                             "  real h(real x) { return g_lpdf(x | ); }\n"
                             "  real g_lpdf(real x) { return -x; }\n"
                             "}\n"
                             "parameters { real p; }\n"
                             "model {\n"
                             "  2 ~ poisson(1) T[1, ];\n"
                             "  p ~ g();\n"
                             "  target += h(p);\n"
                             "  target += h(2);\n"
                             "}\n";
  scl_stan_program *program;
  REQUIRE_OK(stan_read(text, sizeof text - 1, &program));
  const scl_stan_node *model = scl_stan_block(program, SCL_STAN_MODEL);
  CHECK(model->count == 4);
  CHECK(model->child[0]->op == SCL_STAN_LPMF && model->child[0]->user == 0);
  CHECK(model->child[0]->flags & SCL_STAN_TRUNCATED);
  CHECK(model->child[0]->child[1] != NULL && model->child[0]->child[2] == NULL);
  CHECK(model->child[1]->op == SCL_STAN_LPDF && model->child[1]->user == 4);
  CHECK(model->child[2]->child[0]->user == 3);
  CHECK(model->child[3]->child[0]->user == 2);
  CHECK(model->child[2]->child[0]->child[0]->place == SCL_STAN_PARAMETERS);
  CHECK(scl_stan_line(program, model->child[2]->position) == 11);
  scl_stan_free(program);
}

/* ---- includes, sizes, memory ---------------------------------------------------------------- */

static void check_includes(void) {
  static const struct {
    const char *text, *file;
    int line, column;
  } faults[] = {{"\n#include self.stan\n", "self.stan", 2, 1},
                {"#include first.stan", "second.stan", 1, 1},
                {"data {\n#include wrong.stan\n}", "wrong.stan", 1, 7},
                {"model { print(\"\"); #include wrong.stan\n}", "wrong.stan", 1, 7},
                {"functions {\n#include double.stan\n} modl { }", "", 3, 3},
                {"functions { #include double.stan + }", "", 1, 34}};
  scl_stan_program *program;
  size_t length;
  char *text = stan_text("stan/include/outer.stan", &length);
  REQUIRE_OK(stan_read(text, length, &program));
  free(text);
  scl_stan_free(program);
  for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
    CHECK_STATUS(SCL_E_STAN, stan_read(faults[k].text, strlen(faults[k].text), &program));
    const scl_fault *fault = scl_fault_last();
    CHECK(strcmp(fault->where, faults[k].file) == 0);
    CHECK(fault->line == faults[k].line && fault->column == faults[k].column);
    if (fault->line != faults[k].line || fault->column != faults[k].column) {
      printf("       %zu: %s:%d:%d\n", k, fault->where, fault->line, fault->column);
    }
  }
}

/* `count` times a text between two others. */
static scl_status read_repeated(const char *before, const char *text, size_t count,
                                const char *after) {
  const size_t length = strlen(text);
  char *all = test_alloc(strlen(before) + count * length + strlen(after) + 1);
  char *at = all;
  memcpy(at, before, strlen(before));
  at += strlen(before);
  for (size_t k = 0; k < count; k++, at += length) memcpy(at, text, length);
  memcpy(at, after, strlen(after) + 1);
  scl_stan_program *program = NULL;
  const scl_status status = stan_read(all, strlen(all), &program);
  scl_stan_free(program);
  free(all);
  return status;
}

static void check_sizes(void) {
  const size_t many = 10000, bytes = test_quick() ? 1 << 20 : 10 << 20;
  static const char *const deep[][3] = {{"model { print(", "(", "1"},
                                        {"model { print(", "-", "1); }"},
                                        {"model { print(1", "'", "); }"},
                                        {"model { print(x", "[1]", "); }"},
                                        {"model { print(1", " ^ 1", "); }"},
                                        {"model { print(", "{", "1"},
                                        {"model { ", "{", "}"},
                                        {"model { ", "if (1) ", "print(1); }"},
                                        {"model { ", "tuple(", "int"},
                                        {"functions { void f(", "tuple(", "int"},
                                        {"model { print(", "exp(", "1"},
                                        {"model { print(x", ".1", "); }"}};
  for (size_t k = 0; k < sizeof deep / sizeof *deep; k++) {
    CHECK_STATUS(SCL_E_STAN, read_repeated(deep[k][0], deep[k][1], many, deep[k][2]));
    const bool nested = strstr(scl_fault_last()->message, "nested more than") != NULL;
    CHECK(nested);
    if (!nested) printf("       %s%s: %s\n", deep[k][0], deep[k][1], scl_fault_last()->message);
  }
  static const char *const chains[][3] = {
      {"model { print(1", " + 1", "); }"},
      {"model { print(1", " - 1 * 2.5", "); }"},
      {"model { print(1", " ? 1 : 1", "); }"},
      {"model { if (1) ;", " else if (1) ;", " }"},
      {"functions { int f() { if (1) return 1;", " else if (1) return 1;", " else return 2; } }"},
      {"model { while (1) { if (1) ;", " else if (1) ;", " else break; } }"},
      {"model { array[1] int x; x[1", " + 1", "] = x[1]; }"}};
  for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
    CHECK_OK(read_repeated(chains[k][0], chains[k][1], bytes / 20, chains[k][2]));
  }
  /* What is deep within a chain counts. */
  CHECK_STATUS(SCL_E_STAN, read_repeated("model { print(1 + 1 ^ 2 + 1", " ^ 1", many, " + 1); }"));
  CHECK_STATUS(SCL_E_STAN, read_repeated("model { print(0 ? 1 : 0 ? x", "[1]", many, " : 1); }"));
  CHECK_OK(read_repeated("model { print(1.", "0", 509, "); }"));
  CHECK_STATUS(SCL_E_STAN, read_repeated("model { print(1.", "0", 510, "); }"));
  CHECK_OK(read_repeated("/*", "long ", bytes / 5, "*/ model { }"));
  CHECK_OK(read_repeated("//", " long", bytes / 5, "\nmodel { }"));
  CHECK_OK(read_repeated("", "\n", bytes, "model { }"));
  CHECK_OK(read_repeated("model { real x; ", "x = 1;\n", bytes / 7, "}"));
  CHECK_OK(read_repeated("model { real x = sum({1", ", 1", bytes / 3, "}); }"));
  CHECK_OK(read_repeated("model { real x", "yz", bytes / 2, "; }"));
  CHECK_STATUS(SCL_E_STAN, read_repeated("model { ", "print(1); ", bytes / 10, "x }"));
  CHECK(strlen(scl_fault_last()->log) <= 160);
}

/* Functions of one name: by the types of four arguments. */
static void check_overloads(void) {
  static const char *const types[] = {"int", "real", "vector", "matrix", "complex", "row_vector"};
  for (size_t count = 1000; count <= 1001; count++) {
    char *text = test_alloc(100 * count);
    char *at = text + sprintf(text, "functions {");
    for (size_t k = 0; k < count; k++) {
      at += sprintf(at, "void f(%s a, %s b, %s c, %s d) { }\n", types[k % 6], types[k / 6 % 6],
                    types[k / 36 % 6], types[k / 216]);
    }
    at += sprintf(at, "}");
    scl_stan_program *program = NULL;
    CHECK_STATUS(count == 1000 ? SCL_OK : SCL_E_STAN,
                 stan_read(text, (size_t)(at - text), &program));
    scl_stan_free(program);
    free(text);
  }
}

/* Each allocation fails once: a status, nothing lost. */
static void check_memory(void) {
#ifdef SCL_TEST_ALLOC
  size_t length;
  char *text = stan_text("stan/functions.stan", &length);
  for (long n = 1; n < 60; n++) {
    scl_stan_program *program = NULL;
    alloc_fail(n);
    const scl_status status = stan_read(text, length, &program);
    const bool failed = alloc_failed();
    alloc_fail(0);
    CHECK(status == (failed ? SCL_E_MEMORY : SCL_OK));
    scl_stan_free(program);
    if (!failed) break;
  }
  free(text);
#endif
}

void test_stan(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) return; /* no device has a part in it */
  check_programs();
  check_trees();
  check_types();
  check_resolved();
  check_includes();
  check_sizes();
  check_overloads();
  check_memory();
}
