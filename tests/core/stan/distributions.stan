// Sampling statements, densities, distribution functions and random numbers.
data {
  int n;
  int d;
  array[n] int c;
  array[n] int t;
  vector[n] y;
  array[n] real a;
  row_vector[n] r;
  matrix[n, d] X;
  matrix[d, d] S;
  array[n] vector[d] Y;
  array[d] int counts;
}
parameters {
  real mu;
  real<lower=0> s;
  vector[d] b;
  vector<lower=0>[n] v;
  simplex[d] p;
  real<lower=0, upper=1> q;
  ordered[d] cuts;
  corr_matrix[d] R;
}
model {
  y ~ normal(mu, s);
  a ~ normal(v, s);
  r ~ student_t(3, mu, v);
  y[1] ~ normal(mu, s) T[0, 5];
  y[2] ~ gamma(2, s) T[ , 9];
  c[1] ~ poisson(s) T[1, ];
  y[3] ~ normal(mu, s) T[ , ];
  {y[1], 2.0} ~ cauchy(0, 1);
  to_vector(X) ~ std_normal();
  -mu ~ lognormal(0, 1);
  c ~ bernoulli(q);
  c ~ bernoulli_logit(y);
  c ~ binomial(t, q);
  c ~ beta_binomial(t, s, v);
  c ~ neg_binomial_2_log(mu, s);
  c ~ categorical(p);
  c ~ ordered_logistic(y, cuts);
  counts ~ multinomial(p);
  Y ~ multi_normal(b, S);
  b ~ multi_normal_cholesky(Y, S);
  b ~ multi_student_t(3, b, S);
  p ~ dirichlet(rep_vector(1, d));
  R ~ lkj_corr(2);
  S ~ wishart(d, R);
  y ~ normal_id_glm(X, mu, b, s);
  c ~ bernoulli_logit_glm(X, v, b);
  c ~ poisson_log_glm(X, mu, b);
  c ~ neg_binomial_2_log_glm(X, mu, b, s);
  target += normal_lpdf(y | mu, s) + normal_lupdf(a | mu, s) + poisson_lupmf(c | s);
  target += normal_lcdf(y | mu, s) + normal_lccdf(0 | mu, s) + log(normal_cdf(0 | mu, s));
  target += wiener_lpdf(v | 1, 0.1, q, 0.5);
  target += [1, 2, 3];
}
generated quantities {
  real one = normal_rng(mu, s);
  array[n] real many = normal_rng(y, s);
  array[n] int ints = poisson_rng(v);
  int kind = categorical_rng(p);
  vector[d] draw = multi_normal_rng(b, S);
  array[2] vector[d] students = multi_student_t_rng(3, {b', b'}, S);
  array[n] vector[d] draws = multi_normal_rng(Y, S);
  array[d] int parts = multinomial_rng(p, 10);
  vector[d] weights = dirichlet_rng(p);
  matrix[d, d] cor = lkj_corr_rng(d, 2);
  real above = uniform_rng(0, 1) + std_normal_rng();
}
