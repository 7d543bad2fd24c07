/* Tries what kernels are made of, before the device is used. A work-item computes one row of the
 * table (include/primitives.h): the value of a primitive. The groups exchange numbers through local
 * memory, with barriers in a loop whose length is an argument: in step s an item adds to half of
 * its number that of the item 2^s further on. All items use the atomic operations of other
 * kernels. */
SCL_INLINE real primitives_value(int what, real a, real b, real c) {
  switch (what) {
#define PRIMITIVE(name, words, ulps, value)                                                        \
  case PRIMITIVE_##name:                                                                           \
    return value;
    PRIMITIVES(PRIMITIVE)
  }
  return a;
}

__attribute__((reqd_work_group_size(PRIMITIVES_ITEMS, 1, 1))) __kernel void
primitives_try(__global real *table, const long table_offset, const int table_ld, const int steps) {
  __local real numbers[PRIMITIVES_ITEMS];
  const int item = get_local_id(0), at = get_global_id(0);
  const long ld = table_ld;
  __global real *row = table + table_offset + at;
  row[4 * ld] = primitives_value((int)row[0], row[ld], row[2 * ld], row[3 * ld]);
  real number = at;
  for (int s = 0; s < steps; s++) {
    numbers[item] = number;
    barrier(CLK_LOCAL_MEM_FENCE);
    number = 0.5 * number + numbers[(item + (1 << s)) % PRIMITIVES_ITEMS];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  row[5 * ld] = number;
  volatile __global int *counters = (volatile __global int *)(table + table_offset + 6 * ld);
  atomic_inc(counters);
  atomic_or(counters + 1, 1 << (at % 31));
  atomic_min(counters + 2, 1000 - at);
}
