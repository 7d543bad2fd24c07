// Tuples: declared, built, taken apart, nested, in arrays.
functions {
  tuple(vector, real) standardise(vector x) {
    real s = sd(x);
    return ((x - mean(x)) / s, s);
  }
  real first(tuple(real, array[] int) x) { return x.1; }
}
data {
  int n;
  vector[n] x;
  array[3] tuple(int, vector[n]) rows_of;
}
transformed data {
  tuple(vector[n], real) both = standardise(x);
  vector[n] scaled;
  real s;
  (scaled, s) = standardise(x);
  (scaled[1], (s, both.2)) = (1.0, (2, 3.0));
  (both.1, both.2) = standardise(x);
  tuple(real, array[2] int) t = (1, {2, 3});
  t.2[1] = 4;
  t.1 += first(t) + rows_of[2].2[1];
  array[2] tuple(real, int) list = {(1, 2), (1.5, 3)};
  list[1].2 = 5;
  tuple(int,) alone = (1,);
  s = (1 > 2 ? (1, 2.0) : (3, 4)).2;
  for (e in list) print(e, e.1);
}
