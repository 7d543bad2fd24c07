/* The image of a chain: a head, its numbers one by one, its vectors, and a digest of all of them.
 * It does not contain what follows from the options, which the continuing chain shares. */
#include <stdint.h>
#include <string.h>

#include "base/digest.h"
#include "sample/state.h"

enum { VERSION = 3 };

/* A place in an image. `to` and `from` NULL: bytes are only counted. */
typedef struct {
  unsigned char *to;
  const unsigned char *from;
  size_t at, bytes; /* `bytes` can be read */
  bool sound;       /* all that was read is in its range */
} place;

static void move(place *p, void *part, size_t bytes) {
  if (p->from != NULL) {
    p->sound = p->sound && bytes <= p->bytes - p->at;
    if (!p->sound) return;
    if (bytes > 0) memcpy(part, p->from + p->at, bytes);
  } else if (p->to != NULL && bytes > 0) {
    memcpy(p->to + p->at, part, bytes);
  }
  p->at += bytes;
}

static void number(place *p, double *x) {
  move(p, x, sizeof *x);
}

static void vector(place *p, double *x, size_t n) {
  move(p, x, n * sizeof *x);
}

static void whole(place *p, int *x, int least, int most) {
  int32_t wide = *x;
  move(p, &wide, sizeof wide);
  p->sound = p->sound && wide >= least && wide <= most;
  *x = wide;
}

static void flag(place *p, bool *x) {
  int code = *x;
  whole(p, &code, 0, 1);
  *x = code == 1;
}

static void count(place *p, size_t *x, size_t most) {
  uint64_t wide = *x;
  move(p, &wide, sizeof wide);
  p->sound = p->sound && wide <= most;
  *x = (size_t)wide;
}

/* Numbers that must agree with the chain. */
static void same(place *p, double right) {
  double x = right;
  number(p, &x);
  p->sound = p->sound && x == right;
}

static void move_head(place *p) {
  static const unsigned char right[] = {
      's', 'c', 'l', 'c', 'h', 'a', 'i', 'n', VERSION, sizeof(size_t), sizeof(int), sizeof(double)};
  unsigned char head[sizeof right];
  uint32_t order = 0x01020304;
  memcpy(head, right, sizeof right);
  move(p, head, sizeof head);
  move(p, &order, sizeof order);
  p->sound = p->sound && memcmp(head, right, sizeof right) == 0 && order == 0x01020304;
}

static void move_options(place *p, const scl_chain_options *o) {
  const double right[] = {(double)o->dimension,
                          o->warmup,
                          o->iter,
                          o->static_steps,
                          o->leapfrogs,
                          o->max_depth,
                          o->adapts_metric,
                          o->dense,
                          (double)o->rank,
                          o->chooses,
                          o->pools,
                          o->adapt_delta,
                          o->step_size,
                          (double)o->directions,
                          o->save_warmup,
                          o->reject_nan};
  for (size_t k = 0; k < sizeof right / sizeof *right; k++) same(p, right[k]);
}

static void move_stream(place *p, scl_random *s) {
  for (int k = 0; k < 6; k++) move(p, &s->state[k], sizeof s->state[k]);
  count(p, &s->count, p->from != NULL ? p->bytes / sizeof(double) : SIZE_MAX);
  count(p, &s->used, s->count);
  p->sound = p->sound && scl_random_sound(s);
}

static void move_numbers(place *p, scl_chain *c) {
  const int deepest = c->options.max_depth;
  int stage = (int)c->stage, stop = (int)c->stop;
  whole(p, &stage, SCL_STAGE_FIRST, SCL_STAGE_STATIC);
  whole(p, &stop, SCL_CHAIN_RUNS, SCL_CHAIN_FAILS);
  c->stage = (scl_stage)stage;
  c->stop = (scl_chain_stop)stop;
  whole(p, &c->done, 0, c->options.warmup + c->options.iter);
  whole(p, &c->iteration, 0, c->options.warmup + c->options.iter);
  whole(p, &c->rejections, 0, INT32_MAX);
  whole(p, &c->failures, 0, c->rejections);
  whole(p, &c->warmup_failures, 0, c->failures);
  whole(p, &c->failed_iterations, 0, c->done);
  whole(p, &c->doubling, -1, 1);
  whole(p, &c->depth, 0, deepest);
  whole(p, &c->side, 0, 1);
  whole(p, &c->size, 0, 1 << deepest);
  whole(p, &c->leaf, 0, 1 << deepest);
  whole(p, &c->leapfrog, 0, INT32_MAX - 1);
  flag(p, &c->divergent);
  flag(p, &c->failed);
  double *const numbers[] = {&c->lp,
                             &c->step_size,
                             &c->direction,
                             &c->energy0,
                             &c->energy1,
                             &c->metropolis,
                             &c->log_weight,
                             &c->tree_weight,
                             &c->proposal_lp,
                             &c->elapsed,
                             &c->evaluations,
                             &c->warmup_seconds,
                             &c->proposal_energy,
                             &c->adapt.step_size,
                             &c->adapt.mu,
                             &c->adapt.error,
                             &c->adapt.average,
                             &c->adapt.count,
                             &c->adapt.n,
                             &c->adapt.kept};
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) number(p, numbers[k]);
}

static void move_vectors(place *p, const scl_chain *c) {
  const scl_chain_view v = scl_chain_view_of(c);
  vector(p, c->memory, scl_chain_vectors(&c->options));
  vector(p, c->stream.buffer, c->stream.count);
  vector(p, c->draws, (size_t)v.kept * v.dimension);
  vector(p, c->figures, (size_t)v.done * SCL_CHAIN_FIGURES);
}

static void move_before_vectors(place *p, scl_chain *c) {
  move_head(p);
  move_options(p, &c->options);
  move_stream(p, &c->stream);
  move_numbers(p, c);
}

static scl_digest digest_of(const unsigned char *image, size_t bytes) {
  scl_digest digest = scl_digest_begin();
  scl_digest_add(&digest, image, bytes);
  return digest;
}

static size_t move_all(const scl_chain *c, unsigned char *to) {
  scl_chain copy = *c;
  place p = {.to = to, .sound = true};
  move_before_vectors(&p, &copy);
  move_vectors(&p, &copy);
  return p.at;
}

enum { DIGEST = 2 * sizeof(uint64_t) };

size_t scl_chain_image_size(const scl_chain *c) {
  return move_all(c, NULL) + DIGEST;
}

void scl_chain_save(const scl_chain *c, void *image) {
  unsigned char *const to = image;
  const size_t bytes = move_all(c, to);
  const scl_digest digest = digest_of(to, bytes);
  memcpy(to + bytes, digest.word, DIGEST);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Whether the chain is between the evaluations of a transition. */
static bool in_transition(const scl_chain *c) {
  return c->stage >= SCL_STAGE_LEAF && c->stop != SCL_CHAIN_ENDED && c->stop != SCL_CHAIN_WAITS &&
         c->stop != SCL_CHAIN_FAILS;
}

/* Whether the numbers fit each other, as far as memory depends on them. */
static bool consistent(const scl_chain *c) {
  const scl_chain_options *o = &c->options;
  const bool moves = in_transition(c), waits = c->stop == SCL_CHAIN_WAITS;
  if (c->iteration != c->done + moves) return false;
  const bool all = c->done == o->warmup + o->iter;
  if (c->stop == SCL_CHAIN_ENDED ? !all : all && c->stop != SCL_CHAIN_FAILS) return false;
  if (c->stage == SCL_STAGE_FIRST && c->done > 0) return false;
  if (c->stage == (o->static_steps ? SCL_STAGE_LEAF : SCL_STAGE_STATIC)) return false;
  if (waits && (!o->pools || c->stage < SCL_STAGE_LEAF)) return false;
  if (!scl_adapt_consistent(&c->adapt, c->done, waits)) return false;
  if (!moves) return true;
  if (o->static_steps) return c->leapfrog < o->leapfrogs;
  return c->size == 1 << c->depth && c->leaf < c->size && c->stream.used >= (size_t)c->size + 2 &&
         c->leapfrog == c->size - 1 + c->leaf;
}

/* Whether the vectors at this position are complete and valid. */
static bool sound_vectors(place p, const scl_chain *c) {
  const size_t memory = scl_chain_vectors(&c->options) * sizeof *c->memory;
  scl_chain_view v = scl_chain_view_of(c);
  const size_t further =
      c->stream.count + (size_t)v.kept * v.dimension + (size_t)v.done * SCL_CHAIN_FIGURES;
  if (p.bytes - p.at != memory + further * sizeof(double)) return false;
  if (c->options.rank > 0) {
    place rank = p;
    double x = 0.0;
    rank.at += (size_t)(c->lowrank.rank - c->memory) * sizeof x;
    number(&rank, &x);
    if (!(x >= 0.0 && x <= (double)c->options.rank && x == (double)(size_t)x)) return false;
  }
  p.at += memory;
  for (size_t k = 0; k < c->stream.count; k++) {
    double u = 0.0;
    number(&p, &u);
    if (!(u > 0.0 && u < 1.0)) return false;
  }
  return true;
}

static scl_status bad_image(void) {
  return scl_fail_argument("checkpoint", "the saved state of a chain is damaged, or does not fit");
}

scl_status scl_chain_restore(scl_chain *c, const void *image, size_t bytes) {
  if (bytes < DIGEST) return bad_image();
  place p = {.from = image, .bytes = bytes - DIGEST, .sound = true};
  const scl_digest digest = digest_of(p.from, p.bytes);
  if (memcmp(digest.word, p.from + p.bytes, DIGEST) != 0) return bad_image();
  scl_chain saved = *c;
  move_before_vectors(&p, &saved);
  if (!p.sound || !consistent(&saved) || !sound_vectors(p, &saved)) return bad_image();
  SCL_TRY(scl_random_grow(&c->stream, saved.stream.count));
  saved.stream.buffer = c->stream.buffer;
  saved.stream.room = c->stream.room;
  saved.u = NULL;
  if (in_transition(&saved) && saved.stage == SCL_STAGE_LEAF) {
    saved.u = saved.stream.buffer + saved.stream.used - (size_t)saved.size - 2;
  }
  *c = saved;
  move_vectors(&p, c);
  return SCL_OK;
}
