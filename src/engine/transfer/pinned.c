#include "engine/transfer/pinned.h"

#include "base/sizes.h"

/* Bytes: from which threads pay; of an upload's block; of a download's block, which is a large
 * page; from which one more thread pays; that the owner copies at once. */
enum {
  TEAM_FROM = 4 << 20,
  BLOCK_UP = 1 << 20,
  BLOCK_DOWN = 2 << 20,
  THREAD_BYTES = 2 << 20,
  OWNER_BYTES = 256 << 10
};
/* For uploads these threads saturate any bus; for downloads they also clear pages. */
enum { THREADS_UP = 8 };

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
  flow->blocks = scl_ceil_div(all + flow->shift, flow->block);
  atomic_init(&flow->next, 0);
  atomic_init(&flow->open, 0);
  atomic_init(&flow->stop, false);
  for (int p = 0; p < SCL_FLOW_PIECES; p++) atomic_init(&flow->left[p], 0);
}

/* ---- copying --------------------------------------------------------------------------------- */
typedef enum { MOVED, WAITING, FINISHED } progress;

static progress take_block(scl_flow *flow, scl_flow_hand *hand) {
  size_t block = atomic_fetch_add(&flow->next, 1);
  if (block >= flow->blocks) return FINISHED;
  hand->at = block == 0 ? 0 : block * flow->block - flow->shift;
  hand->end = scl_min((block + 1) * flow->block - flow->shift, element_count(flow));
  return MOVED;
}

static size_t span_end(const scl_flow *flow, const scl_packed_span *span) {
  return span->next_col * flow->shape.nrow + span->next_row;
}

static void copy_part(const scl_flow *flow, const scl_flow_hand *hand, size_t end) {
  double *piece = flow->piece[(hand->number - 1) % SCL_FLOW_PIECES];
  if (flow->to != NULL) {
    scl_packed_scatter(&flow->shape, &hand->span, piece, flow->to, flow->ld, hand->at, end,
                       hand->stream);
  } else {
    scl_packed_gather(&flow->shape, &hand->span, flow->from, flow->ld, piece, hand->at, end);
  }
}

/* Touches fresh memory, which the copy would do page by page, while the thread may have to wait for
 * data; the memory is then in the caches. */
static void touch_target(const scl_flow *flow, scl_flow_hand *hand) {
  if (!flow->fresh) return;
  double *to = flow->to + hand->at;
  size_t n = hand->end - hand->at;
  hand->stream = scl_is_touched(to, n * sizeof *to);
  if (!hand->stream && (hand != &flow->own || flow->team == NULL)) scl_touch_pages(to, n);
}

/* One part of a block that lies in one span, of `most` elements. */
static progress copy_step(scl_flow *flow, scl_flow_hand *hand, size_t most) {
  if (hand->at == hand->end) {
    if (take_block(flow, hand) == FINISHED) return FINISHED;
    touch_target(flow, hand);
  }
  while (hand->span_end <= hand->at) {
    scl_packed_next(&flow->shape, flow->capacity, &hand->span);
    hand->span_end = span_end(flow, &hand->span);
    hand->number++;
  }
  if (hand->number > atomic_load_explicit(&flow->open, memory_order_acquire)) return WAITING;
  size_t end = scl_min(scl_min(hand->end, hand->span_end), hand->at + most);
  copy_part(flow, hand, end);
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
    went = copy_step(flow, &hand, flow->block);
    idle = went == WAITING ? idle + 1 : 0;
    if (idle > 0) scl_pause(idle);
  }
}

void scl_flow_start_threads(scl_flow *flow) {
  size_t most = byte_count(flow) / THREAD_BYTES;
  if (byte_count(flow) < TEAM_FROM) return;
  int threads = scl_copy_threads();
  if (flow->to == NULL && threads > THREADS_UP) threads = THREADS_UP;
  if ((size_t)threads > most) threads = (int)most;
  if (!flow->fresh) {
    flow->team = scl_team_launch(threads, serve, flow);
    return;
  }
  /* The creation of a thread needs the lock that page faults need: no page faults before all
   * threads exist. */
  flow->team = scl_team_start(threads);
  scl_team_begin(flow->team, serve, flow);
}

/* Little at a time: other threads wait for the owner's other work. */
bool scl_flow_help(scl_flow *flow) {
  size_t most = flow->team != NULL ? OWNER_BYTES / sizeof(double) : flow->block;
  return copy_step(flow, &flow->own, most) == MOVED;
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
