/* Grouped likelihoods of Vecchia's approximation (engine/pass/vecchia.h). A group of 32 work-items
 * has one block at a time, whose one factor K = G G' serves all members (vecchia_tiles.h).
 *
 * - Sums: the elements of G^-1 z in rows of members are their residuals.
 * - Derivatives: for member i, w = G^-T e_i and b = G^-T (y - k e_i), where y ends in row i. Each
 *   is a column of one work-item: 2 m and 2 m + 1 for member m of `together`. Then each work-item
 *   differentiates the covariances of its rows with others once, by the sum of w b' + b w' over
 *   members. Columns of the last tile are in `below`, those of the first in the panel's place.
 * - Information: w likewise, one column for each member; then Y = dK w by rows, for all of them
 *   from one evaluation of a pair (of plain functions), U = G^-1 Y, one column of a work-item for
 *   each member and parameter, and their products, by rows.
 *
 * Order of summation: a work-item adds up its pairs and blocks, in their order; at the end of a
 * group work-items in order; the driver adds the groups. */

#if VECCHIA_WHAT != VECCHIA_SUMS
/* Unit vectors, rows 32 t ... of column `i`; none if i is negative. */
SCL_INLINE void vecchia_unit(const int t, const int i, real *x) {
  VECCHIA_UNROLL
  for (int j = 0; j < 32; j++) x[j] = 32 * t + j == i ? 1.0 : 0.0;
}
#endif

#if VECCHIA_WHAT == VECCHIA_DERIVATIVES
#define VECCHIA_TOGETHER 8
#define VECCHIA_BELOW_LD (2 * VECCHIA_TOGETHER + 2) /* even, for pairs */

/* Rows of tile t of the right-hand side of column `lane`: that of b if `of_b`, for the member in
 * row i. */
SCL_INLINE void vecchia_start(const vecchia_tiles *s, const int t, const int i, const int of_b,
                              const real logs, __global const real *factors, real *x) {
  real all = 0.0;
  vecchia_unit(t, i, x);
  if (i < 0 || !of_b) return;
  VECCHIA_UNROLL
  for (int j = 0; j < 32; j++) x[j] = 0.0;
  for (int c = 0; c < s->columns; c++) {
    __local const real *e = s->solved + c * VECCHIA_ROWS;
    const real weighted = factors[c] * e[i];
    all += weighted * e[i];
    VECCHIA_UNROLL
    for (int j = 0; j < 32; j++) x[j] += weighted * e[32 * t + j];
  }
  VECCHIA_UNROLL
  for (int j = 0; j < 32; j++) {
    const int q = 32 * t + j;
    x[j] = q < i ? x[j] : q == i ? x[j] - 0.5 * (logs + all) : 0.0;
  }
}

/* Columns w and b of members from .. from + TOGETHER - 1. */
SCL_INLINE_BARRIER void vecchia_solve_members(const vecchia_tiles *s, const real logs,
                                              __global const real *factors,
                                              __local const int *place, const int from,
                                              const int members, __local real *below) {
  const int m = from + s->lane / 2, used = s->lane < 2 * VECCHIA_TOGETHER;
  const int i = used && m < members ? place[m] : -1;
  real x[32];
  for (int t = VECCHIA_LAST_TILE; t >= 0; t--) {
    __local real *to = t == VECCHIA_LAST_TILE ? below : s->panel;
    vecchia_start(s, t, i, s->lane & 1, logs, factors, x);
    if (t < VECCHIA_LAST_TILE && used) {
      vecchia_subtract_below(s, below + s->lane, VECCHIA_BELOW_LD, x);
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* the panel is read */
    vecchia_scale_column(s, t, x);
    vecchia_back_column(s, t, x);
    VECCHIA_UNROLL
    for (int j = 0; j < 32; j++) {
      if (used) to[s->lane + j * VECCHIA_BELOW_LD] = x[j];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* Pairs of w and b in row `q`. */
SCL_INLINE __local const real2 *vecchia_pairs(const vecchia_tiles *s, __local const real *below,
                                              const int q) {
  __local const real *from = q >= 32 * VECCHIA_LAST_TILE
                                 ? below + (q - 32 * VECCHIA_LAST_TILE) * VECCHIA_BELOW_LD
                                 : s->panel + q * VECCHIA_BELOW_LD;
  return (__local const real2 *)from;
}

/* Adds the derivatives of this work-item's pairs to own. */
SCL_INLINE void vecchia_differentiate_pairs(const vecchia_function *f, const vecchia_tiles *s,
                                            __local const real *below, __local real *noise_sum,
                                            __local real *own) {
  real total[VECCHIA_FEW + 2];
  VECCHIA_UNROLL
  for (int q = 0; q < VECCHIA_FEW + 2; q++) total[q] = 0.0;
  for (int t = 0; t < VECCHIA_TILES; t++) {
    const int base = vecchia_base(s, t), rows = 32 - base, at = s->lane - base;
    const int q = s->lane + 32 * t, circle = rows / 2 + 1;
    const int all = circle + (t > 0 ? 32 - s->first : 0);
    __local const real2 *mine = vecchia_pairs(s, below, q);
    real2 pair[VECCHIA_TOGETHER];
    VECCHIA_UNROLL
    for (int m = 0; m < VECCHIA_TOGETHER; m++) pair[m] = mine[m];
    for (int step = 0; at >= 0 && step < all; step++) {
      const int next = at + step - (at + step >= rows ? rows : 0) + base + 32 * t;
      const int j = step < circle ? next : step - circle + s->first;
      if (step > 0 && 2 * step == rows && at >= step) continue;
      __local const real2 *other = vecchia_pairs(s, below, j);
      real weight = 0.0;
      VECCHIA_UNROLL
      for (int m = 0; m < VECCHIA_TOGETHER; m++) {
        const real2 o = other[m];
        weight += pair[m].x * o.y + pair[m].y * o.x;
      }
      if (step == 0) {
        weight *= 0.5;
        *noise_sum += 2.0 * s->noise[q] * weight;
      }
      if (f->plain) {
        vecchia_add_plain(f, weight, q, j, total);
      } else {
        vecchia_add_pair(f, weight, q, j, own);
      }
    }
  }
  vecchia_add_total(f, total, own);
}

/* Derivatives of a block to own, from the sum of squares on. */
SCL_INLINE_BARRIER void vecchia_differentiate_members(
    const vecchia_function *f, const vecchia_tiles *s, const vecchia_task *task,
    __global const real *combine, __local const int *place, const int members,
    __local real *below, __local real *own) {
  __global const real *factors = combine + task->columns * task->combined;
  __local real *noise_sum = own + (task->results - 3) * VECCHIA_ITEMS;
  for (int m = s->lane; m < members; m += VECCHIA_ITEMS) {
    for (int c = 0; c < s->columns; c++) {
      const real e = s->solved[place[m] + c * VECCHIA_ROWS];
      own[0] += factors[c] * e * e;
    }
  }
  for (int from = 0; from < members; from += VECCHIA_TOGETHER) {
    if (VECCHIA_TILES > 1 && from > 0) vecchia_make_panel(f, s); /* columns took its place */
    barrier(CLK_LOCAL_MEM_FENCE);
    vecchia_solve_members(s, task->logs, factors, place, from, members, below);
    vecchia_differentiate_pairs(f, s, below, noise_sum, own + VECCHIA_ITEMS);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#endif

#if VECCHIA_WHAT == VECCHIA_INFORMATION
#define VECCHIA_TOGETHER 8 /* at most */
#define VECCHIA_LOGS (VECCHIA_FEW + 3)

/* Local memory for `together` members: their columns w; Y by tiles, that of the last one in the
 * place of w; `raw` for one member of a plain function, else for all. */
typedef struct {
  int together, parameters, count;
  int w_ld, y_ld; /* odd, as rows of different work-items are read together */
  __local real *y, *w, *raw;
} vecchia_moves;

SCL_INLINE __local real *vecchia_moved(const vecchia_moves *v, const int t) {
  return t == VECCHIA_LAST_TILE ? v->w : v->y;
}

/* Columns w of members from .. from + used - 1. */
SCL_INLINE_BARRIER void vecchia_solve_members(const vecchia_tiles *s, const vecchia_moves *v,
                                              __local const int *place, const int from,
                                              const int used) {
  const int i = s->lane < used ? place[from + s->lane] : -1;
  real x[32];
  for (int t = VECCHIA_LAST_TILE; t >= 0; t--) {
    __local real *to = v->w + s->lane + 32 * t * v->w_ld;
    vecchia_unit(t, i, x);
    if (t < VECCHIA_LAST_TILE && s->lane < v->together) {
      vecchia_subtract_below(s, to + 32 * v->w_ld, v->w_ld, x);
    }
    vecchia_scale_column(s, t, x);
    vecchia_back_column(s, t, x);
    VECCHIA_UNROLL
    for (int j = 0; j < 32; j++) {
      if (s->lane < v->together) to[j * v->w_ld] = x[j];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* moved[q + m * LOGS] = row `row` of dK w by the logarithms of a plain function. */
SCL_INLINE void vecchia_move_plain(const vecchia_function *f, const vecchia_tiles *s,
                                   const vecchia_moves *v, const int row, real *moved) {
  for (int j = s->first; j < VECCHIA_ROWS; j++) {
    real parts[VECCHIA_FEW];
    const covariance_point point = vecchia_plain(f, row, j, parts);
    const real value = 2.0 * f->variance * point.value, slope = f->variance * point.slope;
    const real bend = f->variance * point.bend;
    VECCHIA_UNROLL
    for (int entry = 0; entry < VECCHIA_FEW; entry++) {
      parts[entry] = covariance_times(slope, parts[entry]);
    }
    VECCHIA_UNROLL
    for (int m = 0; m < VECCHIA_TOGETHER; m++) {
      const real w = m < v->together ? v->w[m + j * v->w_ld] : 0.0;
      moved[m * VECCHIA_LOGS] += w * value;
      VECCHIA_UNROLL
      for (int entry = 0; entry < VECCHIA_FEW; entry++) {
        if (entry < f->entries) moved[m * VECCHIA_LOGS + 1 + entry] += w * parts[entry];
      }
      if (point.bend != 0.0) moved[m * VECCHIA_LOGS + 1 + VECCHIA_FEW] += w * bend;
    }
  }
}

/* Y of tile t, for `used` members. */
SCL_INLINE_BARRIER void vecchia_move_tile(const vecchia_function *f, const vecchia_tiles *s,
                                          const vecchia_moves *v, const int t, const int used,
                                          __global const real *group) {
  const int row = s->lane + 32 * t, here = row >= s->first, count = v->count;
  __local real *raw = v->raw + s->lane, *to = vecchia_moved(v, t) + s->lane * v->y_ld;
  real moved[VECCHIA_TOGETHER * VECCHIA_LOGS];
  VECCHIA_UNROLL
  for (int q = 0; q < VECCHIA_TOGETHER * VECCHIA_LOGS; q++) moved[q] = 0.0;
  if (f->plain && here) vecchia_move_plain(f, s, v, row, moved);
  for (int m = 0; !f->plain && m < used; m++) {
    __local real *of = raw + m * count * VECCHIA_ITEMS;
    for (int q = 0; q < count; q++) of[q * VECCHIA_ITEMS] = 0.0;
    for (int j = s->first; here && j < VECCHIA_ROWS; j++) {
      vecchia_add_pair(f, v->w[m + j * v->w_ld], row, j, of);
    }
  }
  VECCHIA_UNROLL
  for (int m = 0; m < VECCHIA_TOGETHER; m++) {
    if (m >= used || !here) continue;
    const real noise = 2.0 * s->noise[row] * v->w[m + row * v->w_ld];
    moved[VECCHIA_LOGS - 1 + m * VECCHIA_LOGS] = noise;
    if (!f->plain) raw[(count - 1 + m * count) * VECCHIA_ITEMS] += noise;
  }
  barrier(CLK_LOCAL_MEM_FENCE); /* w was read */
  VECCHIA_UNROLL
  for (int m = 0; m < VECCHIA_TOGETHER; m++) {
    if (m >= used) continue;
    __local real *of = raw + (f->plain ? 0 : m * count * VECCHIA_ITEMS);
    if (f->plain) {
      of[0] = 0.0;
      VECCHIA_UNROLL
      for (int q = 0; q < VECCHIA_FEW; q++) {
        if (q < f->entries) of[(1 + q) * VECCHIA_ITEMS] = 0.0;
      }
      of[(1 + f->entries) * VECCHIA_ITEMS] = 0.0;
      vecchia_add_total(f, moved + m * VECCHIA_LOGS, of);
      of[(count - 1) * VECCHIA_ITEMS] = moved[VECCHIA_LOGS - 1 + m * VECCHIA_LOGS];
    }
    for (int r = 0; r < v->parameters; r++) {
      to[r + m * v->parameters] = vecchia_gather(group, count, r + 1.0, of);
    }
  }
}

/* U = G^-1 Y in place of Y, `columns` columns. */
SCL_INLINE_BARRIER void vecchia_solve_moved(const vecchia_tiles *s, const vecchia_moves *v,
                                            const int columns) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int column = s->lane; column < columns; column += VECCHIA_ITEMS) {
    real x[32];
    for (int t = 0; t < VECCHIA_TILES; t++) {
      __local real *of = vecchia_moved(v, t) + column;
      for (int i = 0; t > 0 && i < 32; i++) {
        __local const real2 *panel = (__local const real2 *)(s->panel + i * VECCHIA_PANEL_LD);
        real sum = 0.0;
        VECCHIA_UNROLL
        for (int j = 0; j < 16; j++) {
          const real2 pair = panel[j];
          sum += pair.x * x[2 * j] + pair.y * x[2 * j + 1];
        }
        of[i * v->y_ld] -= sum;
      }
      VECCHIA_UNROLL
      for (int j = 0; j < 32; j++) x[j] = of[j * v->y_ld];
      vecchia_forward_column(s, t, x);
      vecchia_scale_column(s, t, x);
      VECCHIA_UNROLL
      for (int j = 0; j < 32; j++) of[j * v->y_ld] = x[j];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* Products, their derivatives and the information of a block to own. */
SCL_INLINE_BARRIER void vecchia_inform_members(const vecchia_function *f, const vecchia_tiles *s,
                                               const vecchia_task *task,
                                               __global const real *group,
                                               __local const int *place, const int members,
                                               __local real *memory, __local real *own) {
  vecchia_moves v = {task->together, task->parameters, 2 * task->terms + task->entries + 1,
                     task->together | 1, task->together * task->parameters | 1};
  v.y = memory;
  v.w = memory + (VECCHIA_TILES - 1) * 32 * v.y_ld;
  v.raw = v.w + max(32 * v.y_ld, VECCHIA_ROWS * v.w_ld);
  for (int from = 0; from < members; from += v.together) {
    const int used = min(v.together, members - from);
    vecchia_solve_members(s, &v, place, from, used);
    for (int t = 0; t < VECCHIA_TILES; t++) vecchia_move_tile(f, s, &v, t, used, group);
    vecchia_solve_moved(s, &v, used * v.parameters);
    for (int t = 0; t < VECCHIA_TILES; t++) {
      const int row = s->lane + 32 * t;
      __local const real *u = vecchia_moved(&v, t) + s->lane * v.y_ld;
      for (int m = 0; m < used; m++) {
        vecchia_inform(row, place[from + m], s->columns, v.parameters, u + m * v.parameters, 1,
                       s->solved + row, s->solved + place[from + m], own);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#endif

/* Reads the block's rows: sets s->first, gives the number of members. code, member, place: one
 * number for each row; x: coordinates. */
SCL_INLINE_BARRIER int vecchia_read_block(vecchia_tiles *s, const vecchia_task *task,
                                          __global const int *rows, __global const real *records,
                                          __global const real *combine, __local int *code,
                                          __local int *member, __local int *place,
                                          __local real *noise, __local real *x) {
  const int width = task->columns;
  int size = 0, members = 0, before[VECCHIA_TILES];
  VECCHIA_UNROLL
  for (int t = 0; t < VECCHIA_TILES; t++) {
    const int r = s->lane + 32 * t;
    code[r] = r <= task->m ? rows[r] : -1;
    before[t] = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = 0; r < VECCHIA_ROWS; r++) {
    const int found = code[r], is = found >= 0 ? found & 1 : 0;
    size += found >= 0;
    members += is;
    VECCHIA_UNROLL
    for (int t = 0; t < VECCHIA_TILES; t++) before[t] += r < s->lane + 32 * t ? is : 0;
  }
  s->first = VECCHIA_ROWS - size;
  VECCHIA_UNROLL
  for (int t = 0; t < VECCHIA_TILES; t++) {
    const int r = s->lane + 32 * t, q = r + s->first, row = r - s->first;
    if (code[r] >= 0 && (code[r] & 1) != 0) place[before[t]] = q;
    const int own = code[max(row, 0)];
    __global const real *record = records + (long)(own >> 1) * task->records_ld;
    member[r] = row >= 0 && (own & 1) != 0;
    noise[r] = task->noise2 * (task->spread ? record[task->p + width] : 1.0);
    s->scale[r] = task->spread ? record[task->p + width + 1] : 0.0;
    for (int c = 0; c < task->p; c++) x[r + c * VECCHIA_ROWS] = record[c];
    for (int c = 0; c < s->columns; c++) {
#if VECCHIA_WHAT == VECCHIA_DERIVATIVES
      real sum = 0.0;
      for (int d = 0; d < width; d++) sum += record[task->p + d] * combine[d + c * width];
#else
      const real sum = record[task->p + c];
#endif
      s->solved[r + c * VECCHIA_ROWS] = row < 0 ? 0.0 : sum;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return members;
}

/* The results named by VECCHIA_WHAT, of the blocks from task.first + group on: partial (results x
 * groups). */
__kernel __attribute__((reqd_work_group_size(VECCHIA_ITEMS, 1, 1))) void
VECCHIA_NAME(__global const real *records, __global const real *neighbours,
             __global const real *plan, __global real *partial, const vecchia_task task,
             __local real *sums, __local real *x) {
  __local real tile[32 * VECCHIA_TILE_LD], published[2 * VECCHIA_PUBLISHED];
  __local real panel[VECCHIA_TILES > 1 ? 32 * VECCHIA_PANEL_LD : 2] __attribute__((aligned(16)));
  __local real scale[VECCHIA_ROWS], noise[VECCHIA_ROWS];
  __local int code[VECCHIA_ROWS], member[VECCHIA_ROWS], place[VECCHIA_ROWS];
  const int lane = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
  const vecchia_function f = vecchia_read(plan + task.plan_offset, x, &task);
  __global const real *combine = plan + task.combine_offset;
  __local real *own = sums + lane;
#if VECCHIA_WHAT == VECCHIA_DERIVATIVES
  __local real below[32 * VECCHIA_BELOW_LD] __attribute__((aligned(16)));
  const int solved = task.combined;
#else
  const int solved = task.columns;
#endif
  vecchia_tiles s = {lane,  0,         solved, (task.m + 1) * 0x1p-52, tile,
                     panel, published, scale,  x + task.p * VECCHIA_ROWS, noise};
  for (int q = 0; q < task.results; q++) own[q * VECCHIA_ITEMS] = 0.0;
  for (int block = task.first + group; block < task.n; block += groups) {
    __global const int *rows = (__global const int *)(neighbours + task.neighbours_offset +
                                                      (long)block * task.neighbours_ld);
    const int members = vecchia_read_block(&s, &task, rows, records + task.records_offset, combine,
                                           code, member, place, noise, x);
    real log_scale;
    const int fine = vecchia_factor_block(&f, &s, member, &log_scale);
    if (!fine && own[0] == 0.0) own[0] = block + 1.0;
    own[VECCHIA_ITEMS] += log_scale;
#if VECCHIA_WHAT == VECCHIA_SUMS
    for (int m = lane; m < members; m += VECCHIA_ITEMS) {
      __local const real *e = s.solved + place[m];
      __local real *to = own + 2 * VECCHIA_ITEMS;
      for (int c = 0; c < solved; c++) {
        for (int d = c; d < solved; d++, to += VECCHIA_ITEMS) {
          to[0] += e[c * VECCHIA_ROWS] * e[d * VECCHIA_ROWS];
        }
      }
    }
#elif VECCHIA_WHAT == VECCHIA_DERIVATIVES
    vecchia_differentiate_members(&f, &s, &task, combine, place, members, below,
                                  own + 2 * VECCHIA_ITEMS);
#else
    vecchia_inform_members(&f, &s, &task, combine, place, members, s.solved + solved * VECCHIA_ROWS,
                           own + 2 * VECCHIA_ITEMS);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  vecchia_finish(sums, task.results, lane,
                 partial + task.partial_offset + (long)group * task.results);
}
