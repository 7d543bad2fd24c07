#include "scl_flow.h"

/* Bytes: that pay for threads; of a block up; of a block down, which is a large page; that pay for
 * one more thread. */
enum { TEAM_FROM = 4 << 20, BLOCK_UP = 1 << 20, BLOCK_DOWN = 2 << 20, THREAD_BYTES = 2 << 20 };

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

static size_t element_count(const scl_flow *flow) {
  return flow->shape.nrow * flow->shape.ncol;
}

static size_t byte_count(const scl_flow *flow) {
  return element_count(flow) * sizeof(double);
}

/* ---- blocks ---------------------------------------------------------------------------------- */
/* Blocks of fresh memory are large pages: two threads in one page would clear it twice. */
void scl_flow_begin(scl_flow *flow) {
  size_t all = element_count(flow), large = BLOCK_DOWN;
  bool big = byte_count(flow) >= TEAM_FROM, dense = flow->ld == flow->shape.nrow;
  flow->block = big ? (flow->to != NULL ? BLOCK_DOWN : BLOCK_UP) / sizeof(double) : all;
  flow->shift = 0;
  flow->fresh = big && dense && flow->to != NULL;
  if (flow->fresh) {
    flow->shift = (uintptr_t)flow->to % large / sizeof(double);
    scl_expect_writes(flow->to, byte_count(flow));
  }
  flow->blocks = (all + flow->shift + flow->block - 1) / flow->block;
  atomic_init(&flow->next, 0);
  atomic_init(&flow->touch, 0);
  atomic_init(&flow->open, 0);
  atomic_init(&flow->stop, false);
  for (int p = 0; p < SCL_FLOW_PIECES; p++) atomic_init(&flow->left[p], 0);
}

static void block_range(const scl_flow *flow, size_t block, size_t *at, size_t *end) {
  *at = block == 0 ? 0 : block * flow->block - flow->shift;
  *end = smaller((block + 1) * flow->block - flow->shift, element_count(flow));
}

static void touch(const scl_flow *flow, size_t block) {
  size_t at, end;
  block_range(flow, block, &at, &end);
  scl_touch_pages(flow->to + at, (end - at) * sizeof(double));
}

/* The mirror image of a span goes all over the matrix: its pages are all touched first. */
static bool touch_first(scl_flow *flow) {
  if (!flow->fresh || !flow->shape.mirrored) return false;
  if (atomic_load(&flow->touch) >= flow->blocks) return false;
  size_t block = atomic_fetch_add(&flow->touch, 1);
  if (block < flow->blocks) touch(flow, block);
  return true;
}

/* ---- copying --------------------------------------------------------------------------------- */
typedef enum { MOVED, WAITING, FINISHED } progress;

static progress take_block(scl_flow *flow, scl_flow_hand *hand) {
  size_t block = atomic_fetch_add(&flow->next, 1);
  if (block >= flow->blocks) return FINISHED;
  block_range(flow, block, &hand->at, &hand->end);
  /* What the copy would do page by page, while it may have to wait for its data anyway. */
  if (flow->fresh && !flow->shape.mirrored) touch(flow, block);
  return MOVED;
}

static size_t span_end(const scl_flow *flow, const scl_packed_span *span) {
  return span->next_col * flow->shape.nrow + span->next_row;
}

static void copy(const scl_flow *flow, const scl_flow_hand *hand, size_t end) {
  double *piece = flow->piece[(hand->number - 1) % SCL_FLOW_PIECES];
  if (flow->to != NULL) {
    scl_packed_scatter(&flow->shape, &hand->span, piece, flow->to, flow->ld, hand->at, end);
  } else {
    scl_packed_gather(&flow->shape, &hand->span, flow->from, flow->ld, piece, hand->at, end);
  }
}

/* One part of a block that lies in one span. */
static progress step(scl_flow *flow, scl_flow_hand *hand) {
  if (touch_first(flow)) return MOVED;
  if (hand->at == hand->end && take_block(flow, hand) == FINISHED) return FINISHED;
  while (hand->span_end <= hand->at) {
    scl_packed_next(&flow->shape, flow->capacity, &hand->span);
    hand->span_end = span_end(flow, &hand->span);
    hand->number++;
  }
  if (hand->number > atomic_load_explicit(&flow->open, memory_order_acquire)) return WAITING;
  size_t end = smaller(hand->end, hand->span_end);
  copy(flow, hand, end);
  atomic_fetch_sub_explicit(&flow->left[(hand->number - 1) % SCL_FLOW_PIECES], end - hand->at,
                            memory_order_release);
  hand->at = end;
  return MOVED;
}

static void serve(void *arg, int part, int parts) {
  scl_flow *flow = arg;
  scl_flow_hand hand = {0};
  progress went = MOVED;
  unsigned idle = 0;
  (void)part;
  (void)parts;
  while (went != FINISHED && !atomic_load_explicit(&flow->stop, memory_order_relaxed)) {
    went = step(flow, &hand);
    idle = went == WAITING ? idle + 1 : 0;
    if (idle > 0) scl_pause(idle);
  }
}

void scl_flow_start_threads(scl_flow *flow) {
  size_t most = byte_count(flow) / THREAD_BYTES;
  if (byte_count(flow) < TEAM_FROM) return;
  int threads = scl_copy_threads();
  if ((size_t)threads > most) threads = (int)most;
  flow->team = scl_team_start(threads);
  scl_team_begin(flow->team, serve, flow);
}

bool scl_flow_help(scl_flow *flow) {
  return step(flow, &flow->own) == MOVED;
}

void scl_flow_end(scl_flow *flow) {
  atomic_store(&flow->stop, true);
  scl_team_wait(flow->team);
  scl_team_stop(flow->team);
  flow->team = NULL;
}

/* ---- spans ----------------------------------------------------------------------------------- */
void scl_flow_open(scl_flow *flow) {
  size_t number = atomic_load(&flow->open), begin = flow->last_end;
  scl_packed_next(&flow->shape, flow->capacity, &flow->last);
  flow->last_end = span_end(flow, &flow->last);
  atomic_store(&flow->left[number % SCL_FLOW_PIECES], flow->last_end - begin);
  atomic_store_explicit(&flow->open, number + 1, memory_order_release);
}

bool scl_flow_copied(const scl_flow *flow, size_t number) {
  return atomic_load_explicit(&flow->left[number % SCL_FLOW_PIECES], memory_order_acquire) == 0;
}
