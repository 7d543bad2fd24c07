/* Recursions on the host (engine/plan/scan.h).
 *
 * A thread takes some sequences, its lanes, through all steps, a tile of steps at a time. A
 * register holds a number for each step and lane of the tile, those of one step next to each other,
 * or one number for all. Operations that do not depend on the state are computed for the whole tile
 * at once, then the new states step by step, then the rest for the whole tile. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "engine/host/code.h"
#include "engine/host/scan_same.h"
#include "engine/host/scan_single.h"
#include "engine/host/scan_slots.h"
#include "engine/plan/scan.h"

enum {
  NONE = -1,
  TILE_NUMBERS = 32768, /* of all registers: 256 KiB */
  MOST_CELLS = 512,     /* steps times lanes of a tile */
  MOST_LANES = 64,
  PAIR_REACH = 8, /* entries among which an operation looks for one that is computed with it */
  WORTH_A_TEAM = 200000 /* operations, steps and sequences */
};

typedef struct {
  const scl_scan_pass *pass;
  const scl_scan_code *code;
  size_t rows, lanes;              /* of a tile */
  size_t chunks;                   /* of sequences */
  int begins[SCL_SCAN_PHASES + 1]; /* where the operations of a phase begin */
  int idle_end[SCL_SCAN_PHASES];   /* where those of idle steps end */
  scl_scan_slots at;
  double *once;          /* of each register: that number */
  size_t stride;         /* numbers of a slot */
  scl_scan_single *plan; /* for operations of all threads, where a thread has one lane */
  double *memory;        /* of all threads */
  _Atomic size_t next;
  _Atomic bool stop;
} job;

typedef struct {
  const job *j;
  double *memory; /* slots, then sums */
  double *sums;   /* for each number and lane */
  scl_scan_single *single;
  int singles[2];      /* how many, and of idle steps, which follow */
  size_t first, lanes; /* sequences */
  size_t t, rows;      /* steps of the tile, counted in the order of computing */
  size_t same;         /* further steps that are as the tile's only one */
  bool idle;           /* they are idle in all lanes */
  const int *result;   /* their registers of results */
} thread;

/* ---- registers ------------------------------------------------------------------------------ */

static double *slot_of(const thread *w, int reg) {
  const size_t ahead = w->j->at.ahead[reg] ? w->lanes : 0;
  return w->memory + (size_t)w->j->at.slot[reg] * w->j->stride + ahead;
}

static scl_run run_of(const thread *w, int reg, size_t row) {
  if (w->j->at.slot[reg] == NONE) return (scl_run){NULL, w->j->once[reg]};
  return (scl_run){slot_of(w, reg) + row * w->lanes, 0.0};
}

static void find_phases(job *j) {
  int k = 0;
  for (int phase = 0; phase < SCL_SCAN_PHASES; phase++) {
    j->begins[phase] = j->idle_end[phase] = k;
    for (; k < j->code->operations && j->code->operation[k].phase == phase; k++) {
      if (j->code->operation[k].idle) j->idle_end[phase] = k + 1;
    }
  }
  j->begins[SCL_SCAN_PHASES] = k;
}

/* ---- what is computed once ------------------------------------------------------------------ */

static void compute_once(job *j) {
  const scl_scan_code *c = j->code;
  const scl_scan_shape *s = &c->shape;
  const int first = c->inputs + c->constants;
  int reg = 0;
  for (int k = 0; k < scl_scan_first(s, SCL_SCAN_SUM); k++) {
    const double *from = scl_host_at(j->pass->input[k]);
    const bool fixed = k >= scl_scan_first(s, SCL_SCAN_FIXED) && s->port[k].shared;
    for (size_t i = 0; i < s->port[k].length; i++) j->once[reg++] = fixed ? from[i] : 0.0;
  }
  memcpy(j->once + c->inputs, c->constant, (size_t)c->constants * sizeof *j->once);
  for (int k = 0; k < c->operations && c->operation[k].phase == SCL_SCAN_ONCE; k++) {
    const int *a = c->operation[k].arg;
    j->once[first + k] =
        scl_op_value((scl_op)c->operation[k].op, j->once[a[0]], j->once[a[1]], j->once[a[2]]);
  }
}

/* ---- inputs and outputs --------------------------------------------------------------------- */

/* The step that row r of the tile belongs to. */
static size_t time_of(const thread *w, size_t r) {
  const scl_scan_pass *p = w->j->pass;
  return p->reverse ? p->steps - 1 - (w->t + r) : w->t + r;
}

/* One sequence's numbers of the tile's steps, in the order of computing; and back. */
static void load_steps(const thread *w, const double *from, double *to) {
  const size_t lanes = w->lanes, rows = w->rows, first = time_of(w, 0);
  if (w->j->pass->reverse) {
    for (size_t r = 0; r < rows; r++) to[r * lanes] = from[first - r];
  } else {
    for (size_t r = 0; r < rows; r++) to[r * lanes] = from[first + r];
  }
}

static void store_steps(const thread *w, const double *from, double *to) {
  const size_t lanes = w->lanes, rows = w->rows, first = time_of(w, 0);
  if (w->j->pass->reverse) {
    for (size_t r = 0; r < rows; r++) to[first - r] = from[r * lanes];
  } else {
    for (size_t r = 0; r < rows; r++) to[first + r] = from[r * lanes];
  }
}

static void load_states(const thread *w) {
  const scl_scan_pass *p = w->j->pass;
  int reg = 0;
  for (int k = 0; k < p->code->shape.ports[SCL_SCAN_STATE]; k++) {
    const size_t length = p->code->shape.port[k].length;
    const double *from = scl_host_at(p->input[k]);
    for (size_t i = 0; i < length; i++, reg++) {
      double *to = slot_of(w, reg);
      for (size_t l = 0; l < w->lanes; l++) to[l] = from[i + length * (w->first + l)];
    }
  }
}

static void load_x(const thread *w, int port, size_t i, double *to) {
  const scl_scan_pass *p = w->j->pass;
  const scl_scan_port *x = &p->code->shape.port[port];
  for (size_t l = 0; l < w->lanes; l++) {
    const size_t sequence = x->shared ? 0 : w->first + l;
    const double *from = scl_host_at(p->input[port]) + p->steps * (i + x->length * sequence);
    load_steps(w, from, to + l);
  }
}

static void load_fixed(const thread *w, int port, size_t i, double *to) {
  const scl_scan_pass *p = w->j->pass;
  const size_t length = p->code->shape.port[port].length;
  const double *from = scl_host_at(p->input[port]);
  for (size_t r = 0; r < w->rows; r++) {
    for (size_t l = 0; l < w->lanes; l++) {
      to[r * w->lanes + l] = from[i + length * (w->first + l)];
    }
  }
}

static void load_inputs(const thread *w) {
  const scl_scan_shape *s = &w->j->code->shape;
  const int x = s->ports[SCL_SCAN_STATE], fixed = scl_scan_first(s, SCL_SCAN_FIXED);
  int reg = (int)scl_scan_numbers(s, SCL_SCAN_STATE);
  for (int k = x; k < scl_scan_first(s, SCL_SCAN_SUM); k++) {
    for (size_t i = 0; i < s->port[k].length; i++, reg++) {
      if (w->j->at.slot[reg] == NONE) continue;
      (k < fixed ? load_x : load_fixed)(w, k, i, slot_of(w, reg));
    }
  }
}

/* A register's numbers at all steps of the tile, as element i of a port that begins at `begin`. */
static void store(const thread *w, int reg, size_t begin, size_t length, size_t i) {
  const scl_scan_pass *p = w->j->pass;
  const scl_run from = run_of(w, reg, 0);
  for (size_t l = 0; l < w->lanes; l++) {
    double *to = scl_host_at(p->dst) + begin + p->steps * (i + length * (w->first + l));
    if (from.array != NULL) store_steps(w, from.array + l, to);
    for (size_t r = 0; r < w->rows && from.array == NULL; r++) to[time_of(w, r)] = from.number;
    for (size_t r = 1; r <= w->same; r++) to[time_of(w, r)] = to[time_of(w, 0)];
  }
}

/* The ports of a role: registers are results from `reg` on, or inputs. */
static void store_ports(const thread *w, scl_scan_role role, bool kept, const int *reg) {
  const scl_scan_pass *p = w->j->pass;
  const scl_scan_shape *s = &p->code->shape;
  const int first = scl_scan_first(s, role);
  size_t begin = scl_scan_begin(s, p->steps, p->sequences, role, kept);
  int next = 0;
  for (int k = first; k < first + s->ports[role]; k++) {
    for (size_t i = 0; i < s->port[k].length; i++, next++) {
      store(w, kept ? next : reg[next], begin, s->port[k].length, i);
    }
    begin += s->port[k].length * p->steps * p->sequences;
  }
}

static void add_sums(const thread *w, const int *reg) {
  const size_t sums = scl_scan_numbers(&w->j->code->shape, SCL_SCAN_SUM);
  for (size_t k = 0; k < sums; k++) {
    const scl_run from = run_of(w, reg[k], 0);
    double *to = w->sums + k * w->lanes;
    if (w->lanes == 1 && from.array != NULL && w->same == 0) {
      double sum = *to;
      for (size_t r = 0; r < w->rows; r++) sum += from.array[r];
      *to = sum;
      continue;
    }
    for (size_t r = 0; r < w->rows + w->same; r++) {
      const size_t row = r < w->rows ? r : 0;
      for (size_t l = 0; l < w->lanes; l++) {
        to[l] += from.array != NULL ? from.array[row * w->lanes + l] : from.number;
      }
    }
  }
}

/* At the end: states, which are in the first row, and sums. */
static void store_last(const thread *w, scl_scan_role role) {
  const scl_scan_pass *p = w->j->pass;
  const scl_scan_shape *s = &p->code->shape;
  const int first = scl_scan_first(s, role);
  double *to = scl_host_at(p->dst) + scl_scan_begin(s, p->steps, p->sequences, role, false);
  int next = 0;
  for (int k = first; k < first + s->ports[role]; k++) {
    const size_t length = s->port[k].length;
    for (size_t i = 0; i < length; i++, next++) {
      const double *from =
          role == SCL_SCAN_STATE ? slot_of(w, next) : w->sums + (size_t)next * w->lanes;
      for (size_t l = 0; l < w->lanes; l++) to[i + length * (w->first + l)] = from[l];
    }
    to += length * p->sequences;
  }
}

/* ---- a tile --------------------------------------------------------------------------------- */

static void run_phase(const thread *w, scl_scan_phase phase, size_t row, size_t count) {
  const scl_scan_code *c = w->j->code;
  const int first = c->inputs + c->constants;
  const int end = w->idle ? w->j->idle_end[phase] : w->j->begins[phase + 1];
  for (int k = w->j->begins[phase]; k < end; k++) {
    const scl_scan_operation *o = &c->operation[k];
    scl_run arg[3] = {{NULL, 0.0}, {NULL, 0.0}, {NULL, 0.0}};
    for (int i = 0; i < scl_op_arity((scl_op)o->op); i++) arg[i] = run_of(w, o->arg[i], row);
    scl_run_op((scl_op)o->op, count, arg, slot_of(w, first + k) + row * w->lanes);
  }
}

/* The states after row `row`, from the results of its operations. */
static void next_states(const thread *w, size_t row) {
  const int states = (int)scl_scan_numbers(&w->j->code->shape, SCL_SCAN_STATE);
  for (int k = 0; k < states; k++) {
    if (w->j->at.ahead[w->result[k]] && w->j->at.slot[w->result[k]] == w->j->at.slot[k]) continue;
    const scl_run from = run_of(w, w->result[k], row);
    double *to = slot_of(w, k) + (row + 1) * w->lanes;
    for (size_t l = 0; l < w->lanes; l++) to[l] = from.array != NULL ? from.array[l] : from.number;
  }
}

static void plan_operand(const thread *w, scl_scan_single *s, int i, int reg) {
  const bool one = w->j->at.slot[reg] == NONE;
  s->arg[i] = one ? w->j->once + reg : slot_of(w, reg);
  s->step[i] = one ? 0 : 1;
}

/* Operations step by step for one lane, with the addresses of their numbers; new states that are
 * elsewhere are copied after them. An operation whose result only one of the next ones reads is
 * computed with it. */
static int plan_single(const thread *w, scl_scan_single *to) {
  const scl_scan_code *c = w->j->code;
  const int first = c->inputs + c->constants;
  const int states = (int)scl_scan_numbers(&c->shape, SCL_SCAN_STATE);
  const int begin = w->j->begins[SCL_SCAN_WITHIN];
  const int end = w->idle ? w->j->idle_end[SCL_SCAN_WITHIN] : w->j->begins[SCL_SCAN_WITHIN + 1];
  int count = 0;
  for (int k = begin; k < end; k++) {
    const scl_scan_operation *o = &c->operation[k];
    const int operands = scl_op_arity((scl_op)o->op);
    int place = NONE, entry = count;
    while (place == NONE && entry > 0 && entry > count - PAIR_REACH) {
      place = scl_scan_slots_pair(&w->j->at, to[--entry].operation, k);
    }
    scl_scan_single s = {.op = o->op, .operation = k};
    if (place == NONE) {
      for (int i = 0; i < 3; i++) plan_operand(w, &s, i, o->arg[i < operands ? i : 0]);
    } else {
      const scl_scan_operation *before = &c->operation[to[entry].operation];
      s = to[entry];
      count--;
      memmove(to + entry, to + entry + 1, (size_t)(count - entry) * sizeof *to);
      s.op = scl_host_code_pair(before->op, o->op, place);
      s.operation = NONE;
      plan_operand(w, &s, 2, operands > 1 ? o->arg[1 - place] : before->arg[0]);
    }
    s.to = slot_of(w, first + k);
    to[count++] = s;
  }
  for (int k = 0; k < states; k++) {
    const int reg = w->result[k];
    if (w->j->at.ahead[reg] && w->j->at.slot[reg] == w->j->at.slot[k]) continue;
    scl_scan_single *s = &to[count++];
    *s = (scl_scan_single){.op = SCL_CODE_COPY, .to = slot_of(w, k) + 1};
    for (int i = 0; i < 3; i++) plan_operand(w, s, i, reg);
  }
  return count;
}

static void set_idle(thread *w, bool idle) {
  w->idle = idle;
  w->result = w->j->code->result + (idle ? w->j->code->results : 0);
}

static void plan_singles(thread *w) {
  for (int idle = 0; idle < 1 + (w->j->code->guard >= 0) && w->lanes == 1; idle++) {
    set_idle(w, idle == 1);
    w->singles[idle] = plan_single(w, w->single + (idle == 1 ? w->singles[0] : 0));
  }
}

/* New states of all steps. */
static void run_steps(const thread *w) {
  run_phase(w, SCL_SCAN_BEFORE, 0, w->rows * w->lanes);
  if (w->lanes == 1) {
    scl_host_scan_single(w->single + (w->idle ? w->singles[0] : 0), w->singles[w->idle], w->rows);
    return;
  }
  for (size_t row = 0; row < w->rows; row++) {
    run_phase(w, SCL_SCAN_WITHIN, row, w->lanes);
    next_states(w, row);
  }
}

/* The port of a guard that is an input of each step, or NONE. */
static int guard_port(const job *j, size_t *element) {
  const scl_scan_shape *s = &j->code->shape;
  if (j->code->guard < 0 || j->code->guard >= j->code->inputs) return NONE;
  const int port = scl_scan_port_of(s, j->code->guard, element);
  const bool is_x = port >= s->ports[SCL_SCAN_STATE] && port < scl_scan_first(s, SCL_SCAN_FIXED);
  return is_x ? port : NONE;
}

/* How many steps after the tile's only one, which is idle, are as it is: it changes no state, and
 * they have its inputs. */
static size_t same_steps(const thread *w) {
  const size_t bytes = w->lanes * sizeof(double);
  for (int k = 0; k < (int)scl_scan_numbers(&w->j->code->shape, SCL_SCAN_STATE); k++) {
    const double *state = slot_of(w, k);
    if (memcmp(state, state + w->lanes, bytes) != 0) return 0;
  }
  return scl_scan_same(w->j->pass, w->t, w->first, w->lanes);
}

static void run_tile(thread *w) {
  const job *j = w->j;
  const scl_scan_shape *s = &j->code->shape;
  load_inputs(w);
  run_steps(w);
  size_t element;
  if (w->idle && guard_port(j, &element) == NONE) { /* known now */
    const scl_run guard = run_of(w, j->code->guard, 0);
    bool idle = true;
    for (size_t l = 0; l < w->lanes; l++) {
      idle = idle && (guard.array != NULL ? guard.array[l] : guard.number) == 0.0;
    }
    set_idle(w, idle);
    if (!idle) run_steps(w);
    w->same = idle ? same_steps(w) : 0;
  }
  const int *sums = w->result + scl_scan_numbers(s, SCL_SCAN_STATE);
  run_phase(w, SCL_SCAN_AFTER, 0, w->rows * w->lanes);
  add_sums(w, sums);
  store_ports(w, SCL_SCAN_OUT, false, sums + scl_scan_numbers(s, SCL_SCAN_SUM));
  if (j->pass->keeps) store_ports(w, SCL_SCAN_STATE, true, NULL);
  for (int k = 0; k < (int)scl_scan_numbers(s, SCL_SCAN_STATE); k++) {
    double *state = slot_of(w, k);
    memmove(state, state + w->rows * w->lanes, w->lanes * sizeof *state);
  }
  w->rows += w->same;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static size_t memory_of_thread(const job *j) {
  return (size_t)j->at.slots * j->stride +
         scl_scan_numbers(&j->code->shape, SCL_SCAN_SUM) * j->lanes;
}

/* Whether step `row`, counted from the tile's first, is idle in all lanes, by an input. */
static bool is_idle(const thread *w, int port, size_t element, size_t row) {
  const scl_scan_pass *p = w->j->pass;
  const scl_scan_port *x = &p->code->shape.port[port];
  bool idle = true;
  for (size_t l = 0; l < w->lanes && idle; l++) {
    const size_t sequence = x->shared ? 0 : w->first + l;
    const double *from = scl_host_at(p->input[port]);
    idle = from[p->steps * (element + x->length * sequence) + time_of(w, row)] == 0.0;
  }
  return idle;
}

/* The next tile: steps that are all idle, or none of them; of a guard that steps compute, one step
 * that may be idle. */
static void cut_tile(thread *w) {
  const size_t most = scl_min(w->j->rows, w->j->pass->steps - w->t);
  const bool guarded = w->j->code->guard >= 0;
  size_t i;
  const int port = guard_port(w->j, &i);
  w->rows = guarded ? 1 : most;
  w->same = 0;
  set_idle(w, guarded && (port == NONE || is_idle(w, port, i, 0)));
  while (port != NONE && w->rows < most && is_idle(w, port, i, w->rows) == w->idle) w->rows++;
}

static void run_chunk(job *j, int part, size_t chunk) {
  const size_t steps = j->pass->steps, sums = scl_scan_numbers(&j->code->shape, SCL_SCAN_SUM);
  thread w = {.j = j, .first = chunk * j->lanes};
  w.memory = j->memory + (size_t)part * memory_of_thread(j);
  w.sums = w.memory + (size_t)j->at.slots * j->stride;
  w.lanes = scl_min(j->lanes, j->pass->sequences - w.first);
  w.single = j->plan + (size_t)part * 2 * (size_t)(j->code->operations + j->code->results);
  memset(w.sums, 0, sums * w.lanes * sizeof *w.sums);
  load_states(&w);
  plan_singles(&w);
  size_t polled = 0; /* steps */
  for (w.t = 0; w.t < steps && !atomic_load(&j->stop); w.t += w.rows) {
    cut_tile(&w);
    run_tile(&w);
    /* part 0 is the caller's thread, which alone may check for interrupts */
    if (part != 0 || w.t + w.rows - polled < j->rows) continue;
    polled = w.t + w.rows;
    if (scl_poll() != SCL_OK) atomic_store(&j->stop, true);
  }
  store_last(&w, SCL_SCAN_STATE);
  store_last(&w, SCL_SCAN_SUM);
}

static void run_part(void *arg, int part, int parts) {
  job *j = arg;
  (void)parts;
  for (;;) {
    const size_t chunk = atomic_fetch_add(&j->next, 1);
    if (chunk >= j->chunks || atomic_load(&j->stop)) return;
    run_chunk(j, part, chunk);
  }
}

/* Lanes and steps of a tile, from the shapes alone. */
static int cut_tiles(job *j) {
  const scl_scan_pass *p = j->pass;
  const double work = (double)p->steps * (double)p->sequences * (double)(j->code->operations + 1);
  const size_t cells = scl_min(MOST_CELLS, TILE_NUMBERS / (size_t)j->at.slots + 1);
  size_t threads = work < WORTH_A_TEAM ? 1 : (size_t)scl_copy_threads();
  threads = scl_min(threads, p->sequences);
  j->lanes = scl_min(scl_ceil_div(p->sequences, threads), MOST_LANES);
  j->rows = scl_min(p->steps, scl_max(1, cells / j->lanes));
  j->chunks = scl_ceil_div(p->sequences, j->lanes);
  j->stride = (j->rows + 1) * j->lanes;
  return (int)scl_min(threads, j->chunks);
}

scl_status scl_host_scan(scl_context *ctx, const scl_scan_pass *pass) {
  (void)ctx;
  job j = {.pass = pass, .code = pass->code};
  scl_team *team = NULL;
  scl_status status;
  const size_t plan = (size_t)(pass->code->operations + pass->code->results);
  find_phases(&j);
  SCL_GO(scl_poll());
  SCL_GO(scl_scan_slots_find(&j.at, pass->code));
  j.once = malloc(((size_t)j.at.registers + 1) * sizeof *j.once);
  if (j.once == NULL)
    SCL_GO(scl_fail_memory((size_t)j.at.registers * sizeof *j.once, 0, "a recursion"));
  compute_once(&j);
  const int threads = cut_tiles(&j);
  const size_t numbers = (size_t)threads * memory_of_thread(&j);
  j.memory = malloc((numbers + 1) * sizeof *j.memory);
  j.plan = malloc((size_t)threads * 2 * plan * sizeof *j.plan);
  if (j.memory == NULL || j.plan == NULL) {
    SCL_GO(scl_fail_memory(numbers * sizeof *j.memory, 0, "a recursion"));
  }
  team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_team_run(team, run_part, &j);
  if (j.stop) status = SCL_E_INTERRUPT;
done:
  scl_team_stop(team);
  scl_scan_slots_end(&j.at);
  free(j.once);
  free(j.plan);
  free(j.memory);
  return status;
}
