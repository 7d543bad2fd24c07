/* The parts of generated OpenCL C that come from the tables: operations and reductions. */
#include "engine/plan/source.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scl_put(scl_writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(w->text + w->used, w->room - w->used, format, args);
  va_end(args);
  if (w->failed || length < 0) return;
  if (w->used + (size_t)length < w->room) {
    w->used += (size_t)length;
    return;
  }
  w->room = 2 * w->room + (size_t)length;
  char *more = realloc(w->text, w->room);
  if (more == NULL) {
    w->failed = true;
    w->text[w->used] = '\0';
    w->room = w->used + 1;
    return;
  }
  w->text = more;
  va_start(args, format);
  w->used += (size_t)vsnprintf(w->text + w->used, w->room - w->used, format, args);
  va_end(args);
}

/* ---- operations ----------------------------------------------------------------------------- */

/* Short expressions are written out, others are functions: these name an operand several times. */
enum { SHORT = 12 };

static bool is_short(unsigned op) {
  return strlen(scl_ops[op].expression) <= SHORT;
}

void scl_put_op_functions(scl_writer *w) {
  static const char *const parameters[] = {"", "const real a", "const real a, const real b",
                                           "const real a, const real b, const real c"};
  bool done[SCL_OP_COUNT] = {false};
  for (int s = 0; s < w->p->steps; s++) {
    const scl_step *step = &w->p->step[s];
    if (step->kind != SCL_STEP_APPLY || done[step->op] || is_short(step->op)) continue;
    done[step->op] = true;
    scl_put(w, "static inline real op_%s(%s) {\n  return %s;\n}\n\n", scl_ops[step->op].name,
            parameters[scl_ops[step->op].arity], scl_ops[step->op].expression);
  }
}

/* An expression of the table with operands in place of a, b and c. */
static void put_expression(scl_writer *w, const char *text, const uint16_t *arg) {
  while (*text != '\0') {
    size_t word = 0;
    while (isalnum((unsigned char)text[word]) || text[word] == '_' || text[word] == '.') word++;
    if (word == 1 && *text >= 'a' && *text <= 'c') {
      scl_put(w, "t%d", arg[*text - 'a']);
    } else {
      scl_put(w, "%.*s", (int)(word > 0 ? word : 1), text);
    }
    text += word > 0 ? word : 1;
  }
}

void scl_put_apply(scl_writer *w, const scl_step *step) {
  if (is_short(step->op)) {
    put_expression(w, scl_ops[step->op].expression, step->arg);
    return;
  }
  scl_put(w, "op_%s(", scl_ops[step->op].name);
  for (int k = 0; k < scl_ops[step->op].arity; k++) {
    scl_put(w, "%st%d", k > 0 ? ", " : "", step->arg[k]);
  }
  scl_put(w, ")");
}

const char *scl_identity_text(const scl_output *o) {
  return scl_reductions[o->op].identity;
}

/* ---- combining ------------------------------------------------------------------------------ */

/* Numbers that the combining expression of an output takes, as parameters or as arguments. */
static void put_numbers(scl_writer *w, const scl_output *o, const char *before) {
  if (o->op != SCL_REDUCE_COUNT) return;
  for (int s = o->first; s < o->last; s++) {
    const scl_step *step = &w->p->step[s];
    if (step->kind == SCL_STEP_NUMBER) scl_put(w, ", %sc%d", before, step->arg[0]);
  }
}

static void put_own_combine(scl_writer *w, int k, const scl_output *o) {
  scl_put(w, "static inline real combine%d(const real u, const real v", k);
  put_numbers(w, o, "const real ");
  scl_put(w, ") {\n");
  for (int s = o->first; s < o->last; s++) {
    const scl_step *step = &w->p->step[s];
    scl_put(w, "  const real t%d = ", s);
    if (step->kind == SCL_STEP_ARGUMENT) {
      scl_put(w, "%s", step->arg[0] == 0 ? "u" : "v");
    } else if (step->kind == SCL_STEP_NUMBER) {
      scl_put(w, "c%d", step->arg[0]);
    } else {
      scl_put_apply(w, step);
    }
    scl_put(w, ";\n");
  }
  scl_put(w, "  return t%d;\n}\n\n", o->value);
}

void scl_put_combine_functions(scl_writer *w) {
  for (int k = 0; k < w->p->outputs; k++) {
    const scl_output *o = &w->p->output[k];
    if (!o->reduces || o->product) continue;
    if (o->op == SCL_REDUCE_COUNT) {
      put_own_combine(w, k, o);
    } else if (scl_reduces_to_index(o->op)) {
      scl_put(w,
              "/* Whether the number v at index v_at is better than u at u_at (0: none yet). */\n"
              "static inline int better%d(const real u, const real u_at, const real v,\n"
              "                          const real v_at) {\n"
              "  if (v != v || v_at == 0.0) return 0;\n"
              "  return u_at == 0.0 || v %s u || (v == u && v_at < u_at);\n}\n\n",
              k, o->op == SCL_REDUCE_WHICH_MAX ? ">" : "<");
    } else {
      scl_put(w, "static inline real map%d(const real a) {\n  return %s;\n}\n\n", k,
              scl_reductions[o->op].map);
      scl_put(w, "static inline real combine%d(const real u, const real v) {\n  return %s;\n}\n\n",
              k, scl_reductions[o->op].combine);
    }
  }
}

/* total = combine(total, number); or the same for a pair of number and index. */
void scl_put_combine(scl_writer *w, const char *indent, int k, const char *total,
                     const char *number, const char *at, const char *number_at) {
  const scl_output *o = &w->p->output[k];
  if (scl_reduces_to_index(o->op)) {
    scl_put(w, "%sif (better%d(%s, %s, %s, %s)) {\n", indent, k, total, at, number, number_at);
    scl_put(w, "%s  %s = %s;\n%s  %s = %s;\n%s}\n", indent, total, number, indent, at, number_at,
            indent);
    return;
  }
  scl_put(w, "%s%s = combine%d(%s, %s", indent, total, k, total, number);
  put_numbers(w, o, "");
  scl_put(w, ");\n");
}
