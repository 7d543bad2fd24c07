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

static size_t element_count(const scl_pinned_copy *copy) {
  return copy->shape.nrow * copy->shape.ncol;
}

static size_t byte_count(const scl_pinned_copy *copy) {
  return element_count(copy) * sizeof(double);
}

/* ---- blocks ---------------------------------------------------------------------------------- */
/* Blocks of fresh memory are large pages: two threads in one page would clear it twice. */
void scl_pinned_begin(scl_pinned_copy *copy) {
  size_t all = element_count(copy), large = BLOCK_DOWN;
  bool big = byte_count(copy) >= TEAM_FROM, dense = copy->ld == copy->shape.nrow;
  copy->block = big ? (copy->to != NULL ? BLOCK_DOWN : BLOCK_UP) / sizeof(double) : all;
  copy->shift = 0;
  copy->fresh = big && dense && copy->to != NULL;
  if (copy->fresh) {
    copy->shift = (uintptr_t)copy->to % large / sizeof(double);
    scl_expect_writes(copy->to, byte_count(copy));
  }
  copy->blocks = scl_ceil_div(all + copy->shift, copy->block);
  atomic_init(&copy->next, 0);
  atomic_init(&copy->open, 0);
  atomic_init(&copy->stop, false);
  for (int p = 0; p < SCL_PINNED_PIECES; p++) atomic_init(&copy->left[p], 0);
}

/* ---- copying --------------------------------------------------------------------------------- */
typedef enum { MOVED, WAITING, FINISHED } progress;

static progress take_block(scl_pinned_copy *copy, scl_pinned_worker *worker) {
  size_t block = atomic_fetch_add(&copy->next, 1);
  if (block >= copy->blocks) return FINISHED;
  worker->at = block == 0 ? 0 : block * copy->block - copy->shift;
  worker->end = scl_min((block + 1) * copy->block - copy->shift, element_count(copy));
  return MOVED;
}

static size_t span_end(const scl_pinned_copy *copy, const scl_packed_span *span) {
  return span->next_col * copy->shape.nrow + span->next_row;
}

static void copy_part(const scl_pinned_copy *copy, const scl_pinned_worker *worker, size_t end) {
  double *piece = copy->piece[(worker->number - 1) % SCL_PINNED_PIECES];
  if (copy->to != NULL) {
    scl_packed_scatter(&copy->shape, &worker->span, piece, copy->to, copy->ld, worker->at, end,
                       worker->stream);
  } else {
    scl_packed_gather(&copy->shape, &worker->span, copy->from, copy->ld, piece, worker->at, end);
  }
}

/* Touches fresh memory, which the copy would do page by page, while the thread may have to wait for
 * data; the memory is then in the caches. */
static void touch_target(const scl_pinned_copy *copy, scl_pinned_worker *worker) {
  if (!copy->fresh) return;
  double *to = copy->to + worker->at;
  size_t n = worker->end - worker->at;
  worker->stream = scl_is_touched(to, n * sizeof *to);
  if (!worker->stream && (worker != &copy->owner || copy->team == NULL)) scl_touch_pages(to, n);
}

/* One part of a block that lies in one span, of `most` elements. */
static progress copy_step(scl_pinned_copy *copy, scl_pinned_worker *worker, size_t most) {
  if (worker->at == worker->end) {
    if (take_block(copy, worker) == FINISHED) return FINISHED;
    touch_target(copy, worker);
  }
  while (worker->span_end <= worker->at) {
    scl_packed_next(&copy->shape, copy->capacity, &worker->span);
    worker->span_end = span_end(copy, &worker->span);
    worker->number++;
  }
  if (worker->number > atomic_load_explicit(&copy->open, memory_order_acquire)) return WAITING;
  size_t end = scl_min(scl_min(worker->end, worker->span_end), worker->at + most);
  copy_part(copy, worker, end);
  atomic_fetch_sub_explicit(&copy->left[(worker->number - 1) % SCL_PINNED_PIECES], end - worker->at,
                            memory_order_release);
  worker->at = end;
  return MOVED;
}

static void copy_blocks(void *arg, int part, int parts) {
  scl_pinned_copy *copy = arg;
  scl_pinned_worker worker = {0};
  progress went = MOVED;
  unsigned idle = 0;
  (void)part;
  (void)parts;
  while (went != FINISHED && !atomic_load_explicit(&copy->stop, memory_order_relaxed)) {
    went = copy_step(copy, &worker, copy->block);
    idle = went == WAITING ? idle + 1 : 0;
    if (idle > 0) scl_pause(idle);
  }
}

void scl_pinned_start_threads(scl_pinned_copy *copy) {
  size_t most = byte_count(copy) / THREAD_BYTES;
  if (byte_count(copy) < TEAM_FROM) return;
  int threads = scl_copy_threads();
  if (copy->to == NULL && threads > THREADS_UP) threads = THREADS_UP;
  if ((size_t)threads > most) threads = (int)most;
  if (!copy->fresh) {
    copy->team = scl_team_launch(threads, copy_blocks, copy);
    return;
  }
  /* The creation of a thread needs the lock that page faults need: no page faults before all
   * threads exist. */
  copy->team = scl_team_start(threads);
  scl_team_begin(copy->team, copy_blocks, copy);
}

/* In small parts: other threads wait for the owner's other work. */
bool scl_pinned_help(scl_pinned_copy *copy) {
  size_t most = copy->team != NULL ? OWNER_BYTES / sizeof(double) : copy->block;
  return copy_step(copy, &copy->owner, most) == MOVED;
}

void scl_pinned_end(scl_pinned_copy *copy) {
  atomic_store(&copy->stop, true);
  scl_team_wait(copy->team);
  scl_team_stop(copy->team);
  copy->team = NULL;
}

/* ---- spans ----------------------------------------------------------------------------------- */
void scl_pinned_open(scl_pinned_copy *copy) {
  size_t number = atomic_load(&copy->open), begin = copy->last_end;
  scl_packed_next(&copy->shape, copy->capacity, &copy->last);
  copy->last_end = span_end(copy, &copy->last);
  atomic_store(&copy->left[number % SCL_PINNED_PIECES], copy->last_end - begin);
  atomic_store_explicit(&copy->open, number + 1, memory_order_release);
}

bool scl_pinned_copied(const scl_pinned_copy *copy, size_t number) {
  return atomic_load_explicit(&copy->left[number % SCL_PINNED_PIECES], memory_order_acquire) == 0;
}
