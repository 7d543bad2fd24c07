/* Bytes of a plan that decide the source of its kernel. */
#include <string.h>

#include "engine/plan/pass.h"

size_t scl_plan_key(const scl_plan *p, unsigned char *to) {
  unsigned char *at = to;
  const unsigned char head[] = {p->n > 1,      p->wide,       p->pairs,       p->in_place,
                                p->margin,     p->triangle,   p->leaves,      p->numbers,
                                p->rectangles, p->outputs,    p->steps % 256, p->steps / 256,
                                p->body % 256, p->body / 256, p->pass};
  memcpy(at, head, sizeof head);
  at += sizeof head;
  memcpy(at, p->step, p->steps * sizeof *p->step);
  at += p->steps * sizeof *p->step;
  for (int k = 0; k < p->leaves; k++) {
    const scl_leaf *l = &p->leaf[k];
    *at++ = l->read;
    *at++ = l->triangle;
    *at++ = l->rectangle;
    *at++ = l->paired;
  }
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    const uint16_t facts[] = {o->step, o->reduces, o->op, o->identity, o->first, o->last, o->value};
    memcpy(at, facts, sizeof facts);
    at += sizeof facts;
  }
  if (p->pass != 0) {
    const scl_pass_layout layout = scl_plan_pass_layout(p);
    memcpy(at, &layout, sizeof layout);
    at += sizeof layout;
    for (int k = 0; k < p->outputs; k++) *at++ = p->output[k].product;
  }
  return (size_t)(at - to);
}
