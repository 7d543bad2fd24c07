// Every constraint; sizes of one and of two.
data {
  int<lower=1> K;
  int<lower=K> N;
  ordered[K] data_ordered;
  cov_matrix[K] Omega;
}
transformed data {
  array[2] simplex[K] flat = rep_array(rep_vector(inv(K), K), 2);
}
parameters {
  real<lower=0, upper=1> p;
  real<upper=p> below;
  vector<offset=1, multiplier=rep_vector(2.0, K)>[K] affine;
  ordered[K] cuts;
  positive_ordered[K] rates;
  simplex[K] weights;
  unit_vector[K] direction;
  sum_to_zero_vector[K] effects;
  sum_to_zero_matrix[K, N] table;
  cholesky_factor_corr[K] L;
  cholesky_factor_cov[K] square_factor;
  cholesky_factor_cov[N, K] tall_factor;
  corr_matrix[K] R;
  cov_matrix[K] Sigma;
  column_stochastic_matrix[K, N] columns;
  row_stochastic_matrix[K, N] rows_sum;
  array[N] simplex[K] several;
}
model {
  weights ~ dirichlet(rep_vector(1, K));
  L ~ lkj_corr_cholesky(2);
  Sigma ~ inv_wishart(K, Omega);
}
generated quantities {
  corr_matrix[K] correlation = multiply_lower_tri_self_transpose(L);
}
