/* A pending expression as text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

enum { NAMES = 64 };

typedef struct {
  char *to;
  size_t used, room;
  const scl_buffer *name[NAMES]; /* x1 is the first matrix in the text */
  int names;
} writer;

static void put_text(writer *w, const char *text) {
  size_t length = strlen(text);
  if (w->used + length + 1 > w->room) length = w->room - w->used - 1;
  memcpy(w->to + w->used, text, length);
  w->used += length;
  w->to[w->used] = '\0';
}

static bool is_full(const writer *w) {
  return w->used + 1 >= w->room;
}

/* "%.6g" with a point in every locale. */
static void put_number(writer *w, double value) {
  char text[40];
  if (isnan(value)) {
    put_text(w, "NaN");
    return;
  }
  if (isinf(value)) {
    put_text(w, value > 0 ? "Inf" : "-Inf");
    return;
  }
  snprintf(text, sizeof text, "%.6g", value);
  for (char *c = text; *c != '\0'; c++) {
    if (strchr("0123456789+-e", *c) == NULL) *c = '.';
  }
  put_text(w, text);
}

static void put_leaf(writer *w, const scl_buffer *buffer) {
  char text[16];
  int k = 0;
  while (k < w->names && w->name[k] != buffer) k++;
  if (k == w->names && k < NAMES) w->name[w->names++] = buffer;
  snprintf(text, sizeof text, "x%d", k + 1);
  put_text(w, text);
}

static const char *sign_of(scl_op op) {
  static const struct {
    scl_op op;
    const char *sign;
  } signs[] = {{SCL_OP_ADD, " + "},      {SCL_OP_SUB, " - "}, {SCL_OP_MUL, " * "},
               {SCL_OP_DIV, " / "},      {SCL_OP_POW, "^"},   {SCL_OP_MOD, " %% "},
               {SCL_OP_INTDIV, " %/% "}, {SCL_OP_EQ, " == "}, {SCL_OP_NE, " != "},
               {SCL_OP_LT, " < "},       {SCL_OP_GT, " > "},  {SCL_OP_LE, " <= "},
               {SCL_OP_GE, " >= "},      {SCL_OP_AND, " & "}, {SCL_OP_OR, " | "}};
  for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
    if (signs[k].op == op) return signs[k].sign;
  }
  return NULL;
}

static void put_node(writer *w, const scl_node *node, bool inside);

static void put_call(writer *w, const char *name, const scl_node *node) {
  put_text(w, name);
  put_text(w, "(");
  for (int k = 0; k < 3 && node->arg[k] != NULL; k++) {
    if (k > 0) put_text(w, ", ");
    put_node(w, node->arg[k], false);
  }
  put_text(w, ")");
}

static void put_apply(writer *w, const scl_node *node, bool inside) {
  const char *sign = sign_of((scl_op)node->op);
  if (sign == NULL && node->op != SCL_OP_NEG && node->op != SCL_OP_SQUARE) {
    put_call(w, scl_op_name((scl_op)node->op), node);
    return;
  }
  if (inside) put_text(w, "(");
  if (node->op == SCL_OP_NEG) put_text(w, "-");
  put_node(w, node->arg[0], true);
  if (node->op == SCL_OP_SQUARE) put_text(w, "^2");
  if (sign != NULL) {
    put_text(w, sign);
    put_node(w, node->arg[1], true);
  }
  if (inside) put_text(w, ")");
}

static void put_part(writer *w, const scl_node *node) {
  char text[96];
  put_node(w, node->arg[0], true);
  const size_t i = scl_node_row(node), j = scl_node_column(node);
  snprintf(text, sizeof text, "[%zu:%zu, %zu:%zu]", i + 1, i + node->nrow, j + 1, j + node->ncol);
  put_text(w, text);
}

static void put_reduction(writer *w, const scl_node *node) {
  static const char *const margin[] = {"", "_by_row", "_by_column"};
  put_text(w, scl_reduction_name((scl_reduction)node->op));
  put_text(w, margin[scl_node_margin(node)]);
  put_text(w, "(");
  put_node(w, node->arg[0], false);
  put_text(w, ")");
}

static void put_node(writer *w, const scl_node *node, bool inside) {
  if (is_full(w)) return; /* and a shared graph is not written out in full */
  switch (node->kind) {
  case SCL_VALUE_DATA:
    put_leaf(w, node->block.buffer);
    break;
  case SCL_VALUE_NUMBER:
    put_number(w, node->attribute[0]);
    break;
  case SCL_VALUE_APPLY:
    put_apply(w, node, inside);
    break;
  case SCL_VALUE_TRANSPOSE:
    put_call(w, "t", node);
    break;
  case SCL_VALUE_BROADCAST:
    put_node(w, node->arg[0], inside);
    break;
  case SCL_VALUE_PART:
    put_part(w, node);
    break;
  case SCL_VALUE_WITH_PART:
    put_call(w, "with_part", node);
    break;
  case SCL_VALUE_INDEX:
    put_text(w, scl_node_margin(node) == SCL_BY_ROW ? "row" : "column");
    break;
  case SCL_VALUE_MATVEC:
    if (inside) put_text(w, "(");
    put_node(w, node->arg[0], true);
    put_text(w, " %*% ");
    put_node(w, node->arg[1], true);
    if (inside) put_text(w, ")");
    break;
  case SCL_VALUE_REDUCE:
    put_reduction(w, node);
    break;
  case SCL_VALUE_PLACEHOLDER:
    put_text(w, node->op == 0 ? "u" : "v");
    break;
  default:
    put_call(w, scl_operations[node->operation].name, node);
  }
}

void scl_expr_text(const scl_mat *x, char *to, size_t room) {
  writer w = {.to = to, .room = room};
  if (room == 0) return;
  to[0] = '\0';
  if (x->pending == NULL) return;
  put_node(&w, scl_node_pending(x), false);
  if (is_full(&w) && room > 4) memcpy(to + room - 4, "...", 4);
}
