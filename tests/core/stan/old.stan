# The syntax of before 2.26 and of before 2.17.
functions {
  real total(real[] x, int[,] k, vector[] v) { return sum(x) + k[1, 1] + v[1][1]; }
  real[,] table(real x) { return {{x}}; }
}
data {
  int<lower=0> N;        # a comment of old
  int<lower=1, upper=3> g[N];
  real x[N], y;
  vector[N] v[2, 3];
  matrix<lower=0>[N, N] m[4];
  int upper;
}
transformed data {
  real lower;
  real T;
  lower <- y;
  for (i in 1:N) lower<-x[i];
  T = fabs(lower) + multiply_log(1, 2) + binomial_coefficient_log(5, 2);
}
parameters { real mu; cholesky_factor_corr[N] L[2]; }
model {
  increment_log_prob(normal_lpdf(x | mu, 1));
  y ~ normal(mu, 1) T[0, 1];
  if (y && 1.5) mu ~ cauchy(mu, 1);
  if (normal_cdf(y, 0, 1) > 0.5) target += 1;
}
