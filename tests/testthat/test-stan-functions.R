# Functions of Stan programs, several in each program, against R.

test_that("functions of numbers", {
  check_sum(c("exp(a) + log(b) + sqrt(b) + expm1(a) + log1p(b) + log2(b) + log10(b)",
              "sin(a) + cos(a) + tan(a) + asin(a) + acos(a) + atan(b)",
              "sinh(a) + cosh(a) + tanh(a) + asinh(b) + acosh(1 + b) + atanh(a)"),
            function(p) with(p, c(exp(a), log(b), sqrt(b), expm1(a), log1p(b), log2(b), log10(b),
                                  sin(a), cos(a), tan(a), asin(a), acos(a), atan(b), sinh(a),
                                  cosh(a), tanh(a), asinh(b), acosh(1 + b), atanh(a))),
            list(a = 0.3, b = 1.7), "real a; real b;")
  check_sum(c("lgamma(b) + tgamma(b) + digamma(b) + lbeta(b, 2) + lchoose(7.5, b) + choose(5, 2)",
              "square(a) + cbrt(b) + inv(b) + inv_sqrt(b) + inv_square(b) + pow(b, a) + fabs(-b)",
              "inv_logit(a) + logit(a) + log_inv_logit(a) + log1m_inv_logit(a) + log1m(a)",
              "log1p_exp(a) + log1m_exp(-b) + inv_cloglog(a) + Phi(a) + inv_Phi(a) + erf(a)",
              "Phi_approx(a) + erfc(a) + exp2(a) + hypot(a, b) + fma(a, b, 2)",
              "log_diff_exp(b, a)"),
            function(p) with(p, c(lgamma(b), gamma(b), digamma(b), lbeta(b, 2),
                                  lgamma(8.5) - lgamma(b + 1) - lgamma(8.5 - b), 10, a^2,
                                  b^(1 / 3), 1 / b, 1 / sqrt(b), 1 / b^2, b^a, b, plogis(a),
                                  qlogis(a), plogis(a, log.p = TRUE), plogis(-a, log.p = TRUE),
                                  log(1 - a), log(1 + exp(a)), log(1 - exp(-b)), 1 - exp(-exp(a)),
                                  pnorm(a), qnorm(a), 2 * pnorm(a * sqrt(2)) - 1,
                                  plogis(0.07056 * a^3 + 1.5976 * a), 2 * pnorm(-a * sqrt(2)), 2^a,
                                  sqrt(a^2 + b^2), a * b + 2, log(exp(b) - exp(a)))),
            list(a = 0.3, b = 1.7), "real a; real b;")
  check_sum(c("fmin(a, b) + fmax(a, b) + fdim(b, a) + fmod(b, 0.6) + step(a) + int_step(2)",
              "log_sum_exp(a, b) + log_mix(0.2, a, b) + multiply_log(a, b) + lmultiply(0, 0)",
              "floor(2.7) + ceil(2.2) + round(-2.5) + trunc(-2.7) + abs(-3) + max(2, 3)",
              "min(2, 3)",
              "gamma_p(b, 0.4) + gamma_q(b, 0.4) + pi() + e() + sqrt2() + atan2(a, b)"),
            function(p) with(p, c(a, b, b - a, b - 1.2, 1, 1, log(exp(a) + exp(b)),
                                  log(0.2 * exp(a) + 0.8 * exp(b)), a * log(b), 0, 2, 3, -3, -2, 3,
                                  3, 2, 1, pi, exp(1), sqrt(2), atan2(a, b))),
            list(a = 0.3, b = 1.7), "real a; real b;")
})

test_that("functions of vectors", {
  v <- c(0.3, -1, 2)
  w <- c(1, 2, -1)
  check_sum(c("sum(v) + prod(v) + mean(v) + variance(v) + sd(v) + max(v) + min(v) + norm1(v)",
              "norm2(v) + dot_self(v) + dot_product(v, w) + distance(v, w)",
              "squared_distance(v, w) + log_sum_exp(v) + sum(w .* softmax(v))",
              "sum(w .* log_softmax(v)) + sum(square(cumulative_sum(v)))"),
            function(p) with(p, c(sum(v), prod(v), mean(v), var(v), sd(v), max(v), min(v),
                                  sum(abs(v)), sqrt(sum(v^2)), sum(v^2), sum(v * w),
                                  sqrt(sum((v - w)^2)), sum((v - w)^2), log(sum(exp(v))),
                                  sum(w * exp(v)) / sum(exp(v)),
                                  sum(w * (v - log(sum(exp(v))))), sum(cumsum(v)^2))),
            list(v = v), "vector[3] v;",
            "vector[3] w;", list(w = w))
  check_sum(c("sum(head(v, 2)) + sum(tail(v, 2)) * 2 + sum(segment(v, 2, 1)) * 3",
              "reverse(v)[1] * v[1] + size(v) + num_elements(v) + rows(v) + cols(v')",
              "dot_product(append_row(v, 2.0), append_row(0.5, v)) + sum(rep_vector(v[1], 4))",
              "sum(append_array(a, a)) + sum(rep_array(v[1], 2, 3)[2]) + sum(to_vector(a) .* v)",
              "sum(to_array_1d(m)) + sum(linspaced_vector(3, 0, 1) .* v) + ones_vector(3)' * v",
              "sort_asc(d)[1] * v[1] + sort_indices_desc(d)[1] * v[2] + rank(d, 2) * v[3]"),
            function(p) with(p, c(sum(v[1:2]), 2 * sum(v[2:3]), 3 * v[2], v[3] * v[1], 12,
                                  sum(c(v, 2) * c(0.5, v)), 4 * v[1], 12, 3 * v[1],
                                  sum(1:3 * v), sum(m), sum(c(0, 0.5, 1) * v) * 1 + sum(v),
                                  1 * v[1], 2 * v[2], 2 * v[3])) + 0,
            list(v = v, m = matrix(1:6 / 5, 2)), "vector[3] v; matrix[2, 3] m;",
            "array[3] real a; vector[3] d;", list(a = 1:3, d = c(2, 5, 1)))
})

expm_of <- function(a) {
  term <- total <- diag(nrow(a))
  for (k in 1:30) {
    term <- term %*% a / k
    total <- total + term
  }
  total
}

test_that("functions of matrices", {
  m <- matrix(c(2, 0.3, 0.5, 0.2, 1.5, 0.1, 0.4, 0.3, 1), 3)
  s <- crossprod(m) + diag(3)
  b <- c(0.3, -1, 2)
  check_sum(c("sum(square(m * b)) + trace(m) + determinant(m) + log_determinant(m)",
              "sum(inverse(m) * b) + sum(mdivide_left(m, b)) + sum(mdivide_right(b', m))",
              "sum(square(diagonal(m))) + sum(square(diag_matrix(b) * m)) + quad_form(m, b)",
              "sum(square(diag_pre_multiply(b, m))) + sum(square(diag_post_multiply(m, b)))",
              "sum(square(quad_form_diag(m, b))) + sum(crossprod(m)) + sum(tcrossprod(m))",
              "sum(columns_dot_product(m, m)) + sum(square(rows_dot_product(m, m)))",
              "sum(add_diag(m, 2)) + sum(square(block(m, 1, 2, 2, 2))) + row(m, 2) * b",
              "sum(col(m, 3)) + sum(sub_col(m, 1, 2, 2)) + sum(sub_row(m, 2, 1, 2))",
              "sum(square(append_col(m, b))) + sum(square(append_row(m, b')))",
              "sum(square(m')) + sum(square(to_matrix(to_vector(m), 3, 3))) + rows(m) + cols(m)",
              "sum(matrix_exp(0.1 * m)) + sum(matrix_power(m, 2)) + trace_quad_form(m, m)"),
            function(p) with(p, c(sum((m %*% b)^2), sum(diag(m)), det(m), log(abs(det(m))),
                                  2 * sum(solve(m, b)), sum(solve(t(m), b)), sum(diag(m)^2),
                                  sum((b * m)^2), sum(b * m %*% b), sum((b * m)^2),
                                  sum((t(m) * b)^2), sum((m * outer(b, b))^2), sum(crossprod(m)),
                                  sum(tcrossprod(m)), sum(m^2), sum(rowSums(m^2)^2), sum(m) + 6,
                                  sum(m[1:2, 2:3]^2), sum(m[2, ] * b), sum(m[, 3]), sum(m[1:2, 2]),
                                  sum(m[2, 1:2]), sum(m^2) + sum(b^2), sum(m^2) + sum(b^2),
                                  2 * sum(m^2), 6, sum(expm_of(0.1 * m)), sum(m %*% m),
                                  sum(diag(t(m) %*% m %*% m)))),
            list(m = m, b = b), "matrix[3, 3] m; vector[3] b;")
  check_sum(c("sum(square(cholesky_decompose(s) * b)) + sum(mdivide_left_spd(s, b))",
              "sum(mdivide_left_tri_low(l, b)) + sum(mdivide_right_tri_low(b', l))",
              "log_determinant_spd(s) * b[1] + sum(inverse_spd(s) * b) + quad_form_sym(s, b)",
              "sum(multiply_lower_tri_self_transpose(l) * b) + sum(chol2inv(l) * b)",
              "sum(csr_matrix_times_vector(2, 3, [1, 2, 3]', {1, 3, 2}, {1, 3, 4}, b))",
              "sum(eigenvalues_sym(s)) * b[1]"),
            function(p) with(p, c(sum((t(chol(s)) %*% b)^2), sum(solve(s, b)),
                                  sum(forwardsolve(t(chol(s)), b)),
                                  sum(backsolve(chol(s), b)), log(det(s)) * b[1], sum(solve(s, b)),
                                  sum(b * s %*% b), sum(s %*% b), sum(solve(s, b)),
                                  b[1] + 2 * b[3] + 3 * b[2], sum(diag(s)) * b[1])),
            list(b = b), "vector[3] b;", "matrix[3, 3] s; matrix[3, 3] l;",
            list(s = s, l = t(chol(s))))
})

test_that("the elements of a sparse matrix by rows", {
  x <- rbind(c(0, 3, 0, 4), 0, c(5, 0, 6, 0))
  check_sum(c("csr_extract_w(x)' * b", "csr_extract_v(x)[3] * b[1] + csr_extract_v(x)[2] * b[2]",
              "csr_extract_u(x)[2] * b[3] + csr_extract_u(x)[3] * b[4] + csr_extract_u(x)[4]",
              paste("square(sum(csr_matrix_times_vector(3, 4, csr_extract_w(x),",
                    "csr_extract_v(x), csr_extract_u(x), b) .* [1, 2, 3]'))")),
            function(p) with(p, c(b * c(3, 4, 5, 6), b[1], 4 * b[2], 3 * b[3], 3 * b[4], 5,
                                  sum(1:3 * x %*% b)^2)),
            list(b = c(0.3, -1, 2, 0.7)), "vector[4] b;", "matrix[3, 4] x;", list(x = x))
})

test_that("covariance functions, GLMs, equations and sums over slices", {
  x <- c(0.1, 0.5, 1.3)
  d <- abs(outer(x, x, "-"))
  check_sum(c("sum(gp_exp_quad_cov(x, a, r)) + sum(gp_matern32_cov(x, a, r))",
              "sum(gp_matern52_cov(x, a, r)) + sum(gp_exponential_cov(x, a, r))",
              "sum(gp_exp_quad_cov(p, a, {r, 2 * r})) + sum(gp_exp_quad_cov(x, x[1:2], a, r))",
              "sum(gp_dot_prod_cov(x, a)) + sum(gp_periodic_cov(x, a, r, 2))"),
            function(p) with(p, {
              t <- sqrt(3) * d / r
              u <- sqrt(5) * d / r
              c(a^2 * exp(-d^2 / (2 * r^2)), a^2 * (1 + t) * exp(-t),
                a^2 * (1 + u + u^2 / 3) * exp(-u), a^2 * exp(-d / r),
                a^2 * exp(-d^2 / (2 * r^2) - d^2 / (8 * r^2)),
                a^2 * exp(-d[, 1:2]^2 / (2 * r^2)), a^2 + outer(x, x),
                a^2 * exp(-2 * sin(pi * d / 2)^2 / r^2))
            }), list(a = 1.3, r = 0.7), "real<lower=0> a; real<lower=0> r;",
            "array[3] real x; array[3] vector[2] p;", list(x = x, p = cbind(x, x)))
  X <- cbind(x, x^2)
  check_sum(c("normal_id_glm_lpdf(y | X, a, b, s) + bernoulli_logit_glm_lpmf(k | X, a, b)",
              "poisson_log_glm_lpmf(k | X, a, b) + neg_binomial_2_log_glm_lpmf(k | X, a, b, s)"),
            function(p) with(p, {
              e <- as.vector(a + X %*% b)
              c(dnorm(c(1, 0, 2), e, s, log = TRUE), dbinom(c(1, 0, 1), 1, plogis(e), log = TRUE),
                dpois(c(1, 0, 1), exp(e), log = TRUE),
                dnbinom(c(1, 0, 1), s, mu = exp(e), log = TRUE))
            }), list(a = 0.3, b = c(-0.5, 0.4), s = 1.2), "real a; vector[2] b; real<lower=0> s;",
            "array[3] int k; vector[3] y; matrix[3, 2] X;",
            list(k = c(1, 0, 1), y = c(1, 0, 2), X = X))
  check_stan_case(stan_case("real<lower=0> k;", "
    array[2, 1] real y = integrate_ode_rk45(decay, {1.0}, 0, {0.5, 1.0}, {k}, {0.0}, {0});
    array[2] vector[1] z = ode_rk45(fall, [1]', 0, {0.5, 1.0}, k);
    target += sum(y[:, 1]) + z[2, 1] + reduce_sum(part, {1.0, 2.0, 3.0}, 1, k);", list(k = 0.8),
    function(p) sum(exp(-p$k * c(0.5, 1, 1))) + sum(-1:-3 * p$k), functions = "
    array[] real decay(real t, array[] real y, array[] real theta, array[] real x_r,
                       array[] int x_i) { return {-theta[1] * y[1]}; }
    vector fall(real t, vector y, real k) { return -k * y; }
    real part(array[] real x, int a, int b, real k) { return -k * sum(x) * a / (b / 3.0); }"),
    "solvers",
    tolerance = 1e-4, digits = 1e-6)
})

test_that("functions whose values depend on the shape of their arguments", {
  tall <- matrix(c(2, 0.3, 0.5, 0.2, 1.5, 0.1), 3)
  d <- matrix(c(1, 0, 2, 0.5), 2)
  x <- cbind(c(0.1, 0.5, 1.3), c(1, 0, 0.4))
  check_sum(c("dot_product(rows_dot_product(v, v), v) + sum(columns_dot_product(v, v))",
              "columns_dot_product(v', v') * v + sum(square(rows_dot_product(v', v')))",
              "sum(square(rows_dot_self(v))) + sum(square(columns_dot_self(v)))",
              "trace_gen_quad_form(d, a, m) + sum(linspaced_vector(1, 2, v[1]))",
              "sum(gp_periodic_cov(x, v[1], r, 2)) + sum(gp_periodic_cov(x, x[1:2], v[1], r, 2))",
              "sum(q * v) + sum(square(k) * v[1]) + sum(square(r2) * v[1])"),
            function(p) with(p, {
              apart <- as.matrix(dist(x))
              k <- v[1]^2 * exp(-2 * sin(pi * apart / 2)^2 / r^2)
              q <- qr.Q(qr(tall), complete = TRUE)
              q <- q * rep(c(sign(diag(qr.R(qr(tall)))), 1), each = 3)
              c(sum(v^3), sum(v^2), sum(v^3), sum(v^2)^2, sum(v^4), sum(v^2)^2,
                sum(diag(d %*% t(m) %*% matrix(1:9, 3) %*% m)), v[1], sum(k), sum(k[, 1:2]),
                sum(q %*% v), 10 * v[1] + (1 + 9 + 25) * v[1], sum(qr.R(qr(tall))^2) * v[1])
            }), list(v = c(0.3, -1, 2), r = 0.7, m = tall), "vector[3] v; real r; matrix[3, 2] m;",
            "matrix[3, 2] t; matrix[2, 2] d; matrix[3, 3] a; array[3] vector[2] x; int N; }
            transformed data { matrix[3, 3] q = qr_Q(t); matrix[3, 2] r2 = qr_R(t);
            vector[7] k = append_row(to_vector(linspaced_int_array(4, 1, 2)),
                                     to_vector(linspaced_int_array(3, 1, N)));",
            list(t = tall, d = d, a = matrix(1:9, 3), x = x, N = 6))
  short <- cl_stan(code = "parameters { vector[4] v; } model { target += distance(v, v[1:2]); }")
  expect_error(short()(v = 1:4), "sizes differ: 4 and 2", class = "statcl_error_stan")
})
