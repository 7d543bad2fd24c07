// Single, multiple, range and missing indices, on both sides.
data {
  int n;
  array[n] int at;
  vector[n] v;
  row_vector[n] r;
  matrix[n, n] m;
  array[n] vector[n] a;
  array[n, n] int grid;
}
transformed data {
  real one = m[1, 2] + v[1] + r[n] + a[1][2] + a[1, 2] + grid[1, 1];
  vector[2] some = v[1 : 2];
  vector[n] picked = v[at];
  vector[n] all = v[];
  vector[n] tail_part = v[2 : ];
  vector[n] head_part = v[ : 2];
  vector[n] same = v[ : ];
  row_vector[n] row_of = m[1];
  row_vector[n] row_part = m[1, at];
  vector[n] column = m[ : , 1];
  matrix[2, n] two_rows = m[1 : 2];
  matrix[n, n] block_of = m[at, at];
  array[2] vector[n] two = a[1 : 2];
  array[n] real firsts = a[ : , 1];
  array[n] vector[n] parts = a[at, at];
  real deep = a[at, at][1, 1];
  matrix[n, n] copy;
  array[n] vector[n] b = a;
  copy[1] = r;
  copy[ : , 2] = v;
  copy[at, at] = m;
  copy[1 : 2, 3] = some;
  copy[1, 1] += 2;
  b[at] = a[at];
  b[1, 1 : 2] = some;
  b[1][2] = 3;
}
