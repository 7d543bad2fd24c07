// Every type, in every block where it may stand.
data {
  int n;
  int<lower=0> count;
  array[n] int<lower=0, upper=count> groups;
  array[n, 2, 3] real cube;
  real<lower=-1.5> low, high;
  complex z;
  vector[n] x;
  row_vector<upper=3>[n] r;
  matrix[n, 2] m;
  array[2] vector<lower=low, upper=high>[n] bounded;
  complex_vector[n] cx;
  complex_row_vector[n] cr;
  array[3] complex_matrix[n, n] cm;
  tuple(int, real, vector[n]) mixed;
  array[2] tuple(matrix[n, n], tuple(int, complex)) nested;
}
transformed data {
  int twice = 2 * n, half = n %/% 2;
  array[twice] int evens = rep_array(2, twice);
  vector[n] scaled = (x - mean(x)) / sd(x);
  tuple(real, int) pair = (1.5, 2);
  real part = pair.1 + nested[1].2.1;
  ;
}
parameters {
  real free;
  real<lower=0> positive;
  real<offset=free, multiplier=positive> shifted;
  vector<lower=x>[n] above;
  array[2, n] matrix<lower=0>[2, 2] many;
  complex w;
  tuple(real<lower=0>, simplex[3]) inside;
}
transformed parameters {
  vector[n] mu = free + positive * x;
  real total = sum(mu) + inside.1;
}
model {
  free ~ normal(0, 1);
  target += -total;
}
generated quantities {
  int<lower=0> draws = poisson_rng(positive);
  vector[n] rep;
  for (i in 1 : n) rep[i] = normal_rng(mu[i], positive);
}
