/* The image of a chain: the structure, its vectors, and what is kept so far. Its pointers are
 * replaced by those of the chain that goes on from it, which has the same options. */
#include <string.h>

#include "sample/state.h"

/* Copies between a chain's part and the image; the place behind it in the image. */
typedef char *(*scl_mover)(char *image, void *part, size_t bytes);

static char *out_of(char *image, void *part, size_t bytes) {
  memcpy(part, image, bytes);
  return image + bytes;
}

static char *into(char *image, void *part, size_t bytes) {
  memcpy(image, part, bytes);
  return image + bytes;
}

static char *skip(char *image, void *part, size_t bytes) {
  (void)part;
  return image + bytes;
}

static char *move_parts(const scl_chain *c, char *image, scl_mover move) {
  const scl_chain_view v = scl_chain_view_of(c);
  image = move(image, c->memory, scl_chain_vectors(&c->options) * sizeof *c->memory);
  image = move(image, c->stream.buffer, c->stream.count * sizeof *c->stream.buffer);
  image = move(image, c->draws, (size_t)v.kept * v.dimension * sizeof *c->draws);
  return move(image, c->figures, (size_t)v.done * SCL_CHAIN_FIGURES * sizeof *c->figures);
}

size_t scl_chain_image_size(const scl_chain *c) {
  return sizeof *c + (size_t)(move_parts(c, NULL, skip) - (char *)NULL);
}

void scl_chain_save(const scl_chain *c, void *image) {
  move_parts(c, into(image, (void *)c, sizeof *c), into);
}

static scl_status bad_image(void) {
  return scl_fail_argument("checkpoint", "the saved state of a chain does not fit its settings");
}

static bool same_options(const scl_chain_options *a, const scl_chain_options *b) {
  return a->dimension == b->dimension && a->warmup == b->warmup && a->iter == b->iter &&
         a->max_depth == b->max_depth && a->save_warmup == b->save_warmup &&
         a->static_steps == b->static_steps && a->dense == b->dense && a->rank == b->rank &&
         a->adapts_metric == b->adapts_metric && a->pools == b->pools;
}

scl_status scl_chain_restore(scl_chain *c, const void *image, size_t bytes) {
  scl_chain saved, *const own = c;
  if (bytes < sizeof saved) return bad_image();
  memcpy(&saved, image, sizeof saved);
  const int total = saved.options.warmup + saved.options.iter;
  const bool sound = same_options(&saved.options, &c->options) && saved.done >= 0 &&
                     saved.done <= total && saved.stream.used <= saved.stream.count &&
                     saved.stream.count <= bytes && scl_chain_image_size(&saved) == bytes;
  if (!sound) return bad_image();
  SCL_TRY(scl_random_grow(&c->stream, saved.stream.count));
  const ptrdiff_t u = saved.u != NULL ? saved.u - saved.stream.buffer : -1;
  saved.stream.buffer = own->stream.buffer;
  saved.stream.room = own->stream.room;
  saved.stream.quantile = own->stream.quantile;
  saved.memory = own->memory;
  saved.node = own->node;
  saved.work = own->work;
  saved.draws = own->draws;
  saved.figures = own->figures;
  *c = saved;
  c->u = u >= 0 && (size_t)u <= c->stream.count ? c->stream.buffer + u : NULL;
  scl_chain_divide(c);
  move_parts(c, (char *)image + sizeof saved, out_of);
  return SCL_OK;
}
