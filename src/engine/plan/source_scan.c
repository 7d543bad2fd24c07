/* OpenCL C of a recursion: a work-item takes one sequence through all steps, its state and sums in
 * private numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/scan.h"
#include "engine/plan/source.h"

static const char *const type_of_input[] = {"state", "x", "fixed"};

static void put_head(scl_writer *w, const scl_scan_code *code) {
  static const char *const parameters[] = {"", "const real a", "const real a, const real b",
                                           "const real a, const real b, const real c"};
  bool done[SCL_OP_COUNT] = {false};
  scl_put(w, "/* Generated from a step of cl_scan(): t are the numbers of a step, s the state, q "
             "sums. */\n"
             "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n"
             "#pragma OPENCL FP_CONTRACT OFF\n\n");
  for (int k = 0; k < code->operations; k++) {
    const unsigned op = code->operation[k].op;
    if (done[op]) continue;
    done[op] = true;
    scl_put(w, "static inline real op_%s(%s) {\n  return %s;\n}\n\n", scl_ops[op].name,
            parameters[scl_ops[op].arity], scl_ops[op].expression);
  }
}

static scl_scan_role role_of(const scl_scan_shape *s, int port) {
  int role = SCL_SCAN_STATE;
  while (port >= scl_scan_first(s, (scl_scan_role)(role + 1))) role++;
  return (scl_scan_role)role;
}

static void put_parameters(scl_writer *w, const scl_scan_shape *s) {
  scl_put(w, "__kernel void scan(const long steps, const long sequences, const int reverse,\n"
             "                   const int keeps");
  for (int k = 0; k < scl_scan_first(s, SCL_SCAN_SUM); k++) {
    scl_put(w, ",\n                   __global const real *x%d, const long x%d_at", k, k);
    scl_put(w, " /* %s */", type_of_input[role_of(s, k)]);
  }
  scl_put(w, ",\n                   __global real *r, const long r_at) {\n");
  scl_put(w, "  const long b = get_global_id(0);\n  if (b >= sequences) return;\n");
}

/* The inputs of a role, as numbers t; states as s. */
static void put_inputs(scl_writer *w, const scl_scan_shape *s, scl_scan_role role) {
  const int first = scl_scan_first(s, role);
  size_t reg = scl_scan_offset(s, role);
  for (int k = first; k < first + s->ports[role]; k++) {
    const size_t length = s->port[k].length;
    for (size_t i = 0; i < length; i++, reg++) {
      scl_put(w, role == SCL_SCAN_X ? "    const " : "  ");
      scl_put(w, role == SCL_SCAN_STATE ? "real s%zu = " : "real t%zu = ", reg);
      if (role == SCL_SCAN_X) {
        scl_put(w, "x%d[x%d_at + time + steps * (%zu", k, k, i);
      } else {
        scl_put(w, "x%d[x%d_at + (%zu", k, k, i);
      }
      if (!s->port[k].shared) scl_put(w, " + %zu * b", length);
      scl_put(w, ")];\n");
    }
  }
}

static void put_constants(scl_writer *w, const scl_scan_code *code) {
  for (int k = 0; k < code->constants; k++) {
    const double x = code->constant[k];
    scl_put(w, "  const real t%d = ", code->inputs + k);
    if (isnan(x)) {
      scl_put(w, "NAN;\n");
    } else if (isinf(x)) {
      scl_put(w, x > 0.0 ? "INFINITY;\n" : "-INFINITY;\n");
    } else {
      scl_put(w, "%a;\n", x);
    }
  }
}

typedef enum { ONCE, IDLE, ALL_OTHERS } put_which;

/* Operations that are executed once; in idle steps too; or all others. */
static void put_operations(scl_writer *w, const scl_scan_code *code, put_which which) {
  for (int k = 0; k < code->operations; k++) {
    const scl_scan_operation *o = &code->operation[k];
    if ((o->phase == SCL_SCAN_ONCE ? ONCE : o->idle ? IDLE : ALL_OTHERS) != which) continue;
    scl_put(w, "%sconst real t%d = op_%s(", which == ONCE ? "  " : "    ",
            code->inputs + code->constants + k, scl_ops[o->op].name);
    for (int i = 0; i < scl_ops[o->op].arity; i++) {
      scl_put(w, "%st%d", i > 0 ? ", " : "", o->arg[i]);
    }
    scl_put(w, ");\n");
  }
}

/* The results of a step that may be idle, as numbers z. */
static void put_choice(scl_writer *w, const scl_scan_code *code) {
  for (int k = 0; k < code->results; k++) {
    scl_put(w, "    real z%d = t%d;\n", k, code->result[code->results + k]);
  }
  scl_put(w, "    if (t%d != 0.0) {\n", code->guard);
  put_operations(w, code, ALL_OTHERS);
  for (int k = 0; k < code->results; k++) scl_put(w, "    z%d = t%d;\n", k, code->result[k]);
  scl_put(w, "    }\n");
}

/* Stores the numbers `name` of ports: registers are results from `reg` on, or counted from 0. The
 * ports begin `before` numbers of a step behind `lasting` numbers of a sequence. */
static void put_stores(scl_writer *w, const scl_scan_shape *s, scl_scan_role role, const int *reg,
                       char name, size_t lasting, size_t before, bool each_step) {
  const int first = scl_scan_first(s, role);
  int next = 0;
  for (int k = first; k < first + s->ports[role]; k++) {
    const size_t length = s->port[k].length;
    for (size_t i = 0; i < length; i++, next++) {
      if (each_step) {
        scl_put(w,
                "    r[r_at + %zu * sequences + steps * (%zu * sequences + %zu + %zu * b) + time]",
                lasting, before, i, length);
      } else {
        scl_put(w, "  r[r_at + %zu * sequences + %zu + %zu * b]", before, i, length);
      }
      scl_put(w, " = %c%d;\n", name, reg != NULL ? reg[next] : next);
    }
    before += length;
  }
}

/* `result`: the registers of results, or 0, 1, ... */
static void put_kernel(scl_writer *w, const scl_scan_code *code, const int *result) {
  const scl_scan_shape *s = &code->shape;
  const size_t states = scl_scan_numbers(s, SCL_SCAN_STATE),
               sums = scl_scan_numbers(s, SCL_SCAN_SUM);
  const int *sum = result + states, *out = sum + sums;
  const char name = code->guard >= 0 ? 'z' : 't';
  put_head(w, code);
  put_parameters(w, s);
  put_inputs(w, s, SCL_SCAN_FIXED);
  put_constants(w, code);
  put_operations(w, code, ONCE);
  put_inputs(w, s, SCL_SCAN_STATE);
  for (size_t k = 0; k < sums; k++) scl_put(w, "  real q%zu = 0.0;\n", k);
  scl_put(w, "  for (long step = 0; step < steps; step++) {\n"
             "    const long time = reverse ? steps - 1 - step : step;\n");
  for (size_t k = 0; k < states; k++) scl_put(w, "    const real t%zu = s%zu;\n", k, k);
  put_inputs(w, s, SCL_SCAN_X);
  put_operations(w, code, IDLE);
  if (code->guard >= 0) {
    put_choice(w, code);
  } else {
    put_operations(w, code, ALL_OTHERS);
  }
  put_stores(w, s, SCL_SCAN_OUT, out, name, states + sums, 0, true);
  scl_put(w, "    if (keeps) {\n");
  put_stores(w, s, SCL_SCAN_STATE, NULL, 't', states + sums, scl_scan_numbers(s, SCL_SCAN_OUT),
             true);
  scl_put(w, "    }\n");
  for (size_t k = 0; k < sums; k++) scl_put(w, "    q%zu += %c%d;\n", k, name, sum[k]);
  for (size_t k = 0; k < states; k++) scl_put(w, "    s%zu = %c%d;\n", k, name, result[k]);
  scl_put(w, "  }\n");
  put_stores(w, s, SCL_SCAN_STATE, NULL, 's', 0, 0, false);
  put_stores(w, s, SCL_SCAN_SUM, NULL, 'q', 0, states, false);
  scl_put(w, "}\n");
}

scl_status scl_scan_source(scl_scan_code *code) {
  scl_writer w = {.room = 8192};
  if (code->source != NULL) return SCL_OK;
  int *order = malloc(((size_t)code->results + 1) * sizeof *order);
  for (int k = 0; order != NULL && k < code->results; k++) order[k] = k;
  w.text = order != NULL ? calloc(1, w.room) : NULL;
  if (w.text != NULL) put_kernel(&w, code, code->guard >= 0 ? order : code->result);
  free(order);
  if (w.text == NULL || w.failed) {
    free(w.text);
    return scl_fail_memory(w.room, 0, "a kernel source");
  }
  code->source = w.text;
  return SCL_OK;
}
