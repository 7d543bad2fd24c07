// Functions of functions.
functions {
  vector decay(real t, vector y, real k) { return -k * y; }
  array[] real old_decay(real t, array[] real y, array[] real theta, array[] real xr,
                         array[] int xi) {
    return {-theta[1] * y[1]};
  }
  vector residual(real t, vector y, vector dy) { return y - dy; }
  vector root(vector x, real a) { return x .* x - a; }
  vector old_root(vector x, vector theta, array[] real xr, array[] int xi) { return x - theta; }
  real part(array[] real y, int start, int end, real mu) { return normal_lpdf(y | mu, 1); }
  real counts_lpmf(array[] int y, int start, int end, vector mu) {
    return poisson_lpmf(y | mu[start : end]);
  }
  vector shard(vector phi, vector theta, data array[] real xr, data array[] int xi) {
    return [normal_lpdf(xr | phi[1], 1)]';
  }
  real integrand(real x, real xc, array[] real theta, array[] real xr, array[] int xi) {
    return exp(-theta[1] * x);
  }
}
data {
  int n;
  array[n] real y;
  array[n] int c;
  array[n] real<lower=0> ts;
  array[1, 1] real xr;
  array[1, 1] int xi;
}
transformed data { array[0] real none_r; array[0] int none_i; }
parameters { real<lower=0> k; vector[1] y0; vector[n] mu; real m; }
transformed parameters {
  array[n] vector[1] by_rk45 = ode_rk45(decay, y0, 0, ts, k);
  array[n] vector[1] by_bdf = ode_bdf_tol(decay, y0, 0.0, ts, 1e-6, 1e-6, 1000, k);
  array[n] vector[1] by_adjoint = ode_adjoint_tol_ctl(decay, y0, 0, ts, 1e-6, [1e-6]', 1e-6, [1e-6]',
                                                      1e-6, 1e-6, 1000, 100, 1, 1, 1, k);
  array[n] vector[1] by_dae = dae(residual, y0, y0, 0, ts);
  array[n, 1] real old = integrate_ode_rk45(old_decay, to_array_1d(y0), 0, ts, {k}, none_r, none_i);
  array[n, 1] real old_tol = integrate_ode_bdf(old_decay, {1.0}, 0, ts, {k}, none_r, none_i, 1e-6, 1e-6,
                                               100);
  vector[1] solved = solve_newton(root, y0, k) + solve_powell_tol(root, y0, 1e-6, 1e-6, 100, k);
  vector[1] old_solved = algebra_solver(old_root, y0, y0, none_r, none_i);
  real area = integrate_1d(integrand, 0, 1, {k}, none_r, none_i) +
              integrate_1d(integrand, 0, positive_infinity(), {k}, none_r, none_i, 1e-8);
}
model {
  target += reduce_sum(part, y, 1, m);
  target += reduce_sum_static(counts_lupmf, c, 2, exp(mu));
  target += sum(map_rect(shard, mu, {y0}, xr, xi));
}
