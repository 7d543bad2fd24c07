// Functions: kinds, overloads, recursion, data arguments, order.
functions {
  real twice(real x);
  real twice(real x) { return 2 * x; }
  vector twice(vector x) { return 2 * x; }
  array[] real twice(array[] real x) {
    array[size(x)] real y;
    for (i in 1 : size(x)) y[i] = twice(x[i]);
    return y;
  }
  real power(data real x, int k) { return k == 0 ? 1 : x * power(x, k - 1); }
  int odd(int k) { return k == 0 ? 0 : even(k - 1); }
  int even(int k) { return k == 0 ? 1 : odd(k - 1); }
  real shifted_lpdf(real y, real mu, real sigma) { return normal_lupdf(y - 1 | mu, sigma); }
  real shifted_lpdf(vector y, real mu, real sigma) { return normal_lpdf(y - 1 | mu, sigma); }
  real shifted_lcdf(real y, real mu, real sigma) { return normal_lcdf(y - 1 | mu, sigma); }
  real shifted_lccdf(real y, real mu, real sigma) { return normal_lccdf(y - 1 | mu, sigma); }
  real shifted_cdf(real y, real mu, real sigma) { return exp(shifted_lcdf(y | mu, sigma)); }
  real shifted_rng(real mu, real sigma) { return 1 + normal_rng(mu, sigma); }
  real counted_lpmf(int y, real mu) { return poisson_lpmf(y | mu); }
  void penalty_lp(vector b) {
    b ~ std_normal();
    target += -dot_self(b);
    if (target() > 0) print("large");
  }
  real scale_jacobian(real u) { jacobian += u; return exp(u); }
  tuple(real, int) both(tuple(real, int) x, array[,] int y) { return (x.1, y[1, 1]); }
  void nothing() { }
}
data {
  int n;
  vector[n] y;
  array[n] int k;
}
parameters { real mu; real u; vector[n] b; }
transformed parameters { real sigma = scale_jacobian(u); }
model {
  y ~ shifted(mu, sigma);
  y[1] ~ shifted(mu, sigma) T[0, ];
  k[1] ~ counted(sigma);
  target += shifted_lupdf(y | mu, sigma);
  target += twice(mu) + sum(twice(b)) + power(y[1], 3) + odd(n);
  penalty_lp(b);
  nothing();
}
generated quantities {
  real rep = shifted_rng(mu, sigma);
  int last;
  (rep, last) = both((1, 2), {{3}});
}
