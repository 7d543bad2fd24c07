/* Solutions and determinants, order up to 8: L and U with row pivoting in registers, then one
 * right-hand side after the other through local memory. Ownership of matrices: batch_small.h. */

/* row[k]: the row that was swapped with row k. The diagonal holds the pivots. */
SCL_INLINE int eliminate(real *a, int *row) {
  int status = 0;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    real size;
    row[k] = pivot_row(a, k, &size);
    if (status == 0) status = pivot_status(size, k);
    swap_rows(a, k, row[k]);
    real scale = 1.0 / AT(a, k, k);
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      real factor = AT(a, i, k) * scale;
      AT(a, i, k) = factor;
      SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) {
        AT(a, i, j) = fma(-factor, AT(a, k, j), AT(a, i, j));
      }
    }
  }
  return status;
}

SCL_INLINE void substitute(const real *a, const int *row, real *x) {
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      bool swap = row[k] == i;
      real upper = x[k], lower = x[i];
      x[k] = swap ? lower : upper;
      x[i] = swap ? upper : lower;
    }
  }
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) x[i] = fma(-AT(a, i, k), x[k], x[i]);
  }
  SCL_UNROLL for (int k = BATCH_N - 1; k >= 0; k--) {
    x[k] /= AT(a, k, k);
    SCL_UNROLL for (int i = 0; i < k; i++) x[i] = fma(-AT(a, i, k), x[k], x[i]);
  }
}

/* The determinant without its power of two. Pivots after a zero are not finite: not used. */
SCL_INLINE real determinant(const real *a, const int *row, int *power) {
  real product = 1.0;
  *power = 0;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    int more;
    const real part = pivot_part(AT(a, k, k), &more);
    product = product == 0.0 ? product : row[k] == k ? product * part : product * -part;
    *power += more;
  }
  return product;
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_OUT) {
  const int batch = task.batch, count_b = task.count_b, flags = task.flags;
  const long in0 = task.a_offset, b0 = task.b_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_b = task.b_step, step_out = task.out_step;
  __local real staged[BATCH_LOCAL];
  const int item = (int)get_local_id(0);
  const long first = (long)get_group_id(0) * BATCH_ITEMS; /* matrix of the group */
  const int count = (int)min((long)BATCH_ITEMS, batch - first);
  real a[BATCH_SQUARE], x[BATCH_N];
  int row[BATCH_N], status = 0;
  batch_in(item, count, BATCH_SQUARE, BATCH_STRIDE, step_in, in0 % 2 == 0,
           in + in0 + first * step_in, staged);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    SCL_UNROLL for (int e = 0; e < BATCH_SQUARE; e++) a[e] = staged[item * BATCH_STRIDE + e];
    status = eliminate(a, row);
    if (flags & BATCH_DET) {
      int power;
      const real product = determinant(a, row, &power);
      determinant_out(product, power, batch, flags, out + out0 + first + item);
    } else {
      batch_report(first + item, status, flags, statuses, any);
    }
  }
  if (flags & BATCH_DET) return;
  __local real *mine = staged + item * BATCH_COLUMN;
  for (int c = 0; c < count_b; c++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    batch_in(item, count, BATCH_N, BATCH_COLUMN, step_b, (b0 + c * BATCH_N) % 2 == 0,
             b + b0 + first * step_b + c * BATCH_N, staged);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < count) {
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) x[i] = mine[i];
      substitute(a, row, x);
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) mine[i] = status == 0 ? x[i] : NAN;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    batch_out(item, count, BATCH_N, BATCH_COLUMN, step_out, (out0 + c * BATCH_N) % 2 == 0, staged,
              out + out0 + first * step_out + c * BATCH_N);
  }
}
