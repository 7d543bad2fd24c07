/* Loops, conditions, messages, blocks. */
functions {
  int first_above(vector x, real bound) {
    for (i in 1 : num_elements(x))
      if (x[i] > bound) return i;
    return 0;
  }
  real forever(int k) {
    int i = k;
    while (1) {
      i -= 1;
      if (i < 0) return i;
    }
  }
  real either(int k) {
    if (k > 1) return 1;
    else if (k < -1) return -1;
    else reject("k = ", k);
  }
  void stop(int k) {
    if (k == 0) return;
    fatal_error("k is ", k, " in ", "stop()");
  }
}
data {
  int n;
  vector[n] x;
  matrix[n, n] m;
  array[n] int g;
}
transformed data {
  int count = 0;
  real total = 0;
  for (i in 1 : n) {
    if (x[i] < 0) continue;
    else if (x[i] > 10) break;
    count += 1;
    total += x[i];
  }
  for (e in x) if (e > total) break;
  for (e in x) total += e;
  for (e in m) total += e;
  for (k in g) count += k;
  for (row_of in {x, x}) for (e in row_of) total -= e;
  while (count > 0 && total < 5) {
    count = count - 1;
    { real count_inside = count; total += count_inside; }
  }
  int sign = total > 0 ? 1 : total < 0 ? -1 : 0;
  if (sign) print("sign ", sign, " of ", total, x, {1, 2});
  stop(sign);
  profile("sums") { real inside = sum(x); total += inside; }
  if (sign) real lonely = 1;
}
model { }
