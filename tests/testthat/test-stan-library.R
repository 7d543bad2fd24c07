# Functions of the library that no other test of Stan programs calls, several in each program.

test_that("distribution functions of the library", {
  check_sum(c("std_normal_lcdf(a) + std_normal_lccdf(a)",
              "double_exponential_lcdf([a, -a]' | 0.1, b) + double_exponential_lccdf(a | 0.1, b)",
              "chi_square_lcdf(b | 3) + chi_square_lccdf(b | 3)",
              "frechet_lcdf(b | 2, 1.5) + frechet_lccdf(b | 2, 1.5)",
              "rayleigh_lcdf(b | 1.2) + rayleigh_lccdf(b | 1.2)",
              "beta_proportion_lcdf(a | 0.4, b) + beta_proportion_lccdf(a | 0.4, b)",
              "uniform_lcdf(a | -1, b) + uniform_lccdf(a | -1, b)"),
            function(p) with(p, {
              laplace <- function(q) ifelse(q < 0, exp(q) / 2, 1 - exp(-q) / 2)
              u <- (a + 1) / (b + 1)
              c(log(pnorm(a) * pnorm(-a)), log(laplace((c(a, -a) - 0.1) / b)),
                log(1 - laplace((a - 0.1) / b)), pchisq(b, 3, log.p = TRUE),
                pchisq(b, 3, lower.tail = FALSE, log.p = TRUE),
                -(b / 1.5)^-2, log(1 - exp(-(b / 1.5)^-2)),
                log(1 - exp(-b^2 / 2.88)), -b^2 / 2.88, pbeta(a, 0.4 * b, 0.6 * b, log.p = TRUE),
                pbeta(a, 0.4 * b, 0.6 * b, lower.tail = FALSE, log.p = TRUE), log(u), log(1 - u))
            }), list(a = 0.3, b = 1.7), "real a; real b;")
  counts <- c("bernoulli", "binomial", "poisson", "neg_binomial", "neg_binomial_2")
  arguments <- c("p", "{4, 5}, p", "m", "m, 1.2", "m, 1.2")
  y <- c("{0, 0}", "{1, 3}", "{0, 4}", "{1, 5}", "{1, 5}")
  check_sum(sprintf("%1$s_lcdf(%3$s | %2$s) + %1$s_lccdf(%3$s | %2$s)", counts, arguments, y),
            function(p) with(p, {
              both <- function(f, q, ...) c(f(q, ..., log.p = TRUE),
                                            f(q, ..., lower.tail = FALSE, log.p = TRUE))
              c(both(pbinom, c(0, 0), 1, p), both(pbinom, c(1, 3), 4:5, p), both(ppois, c(0, 4), m),
                both(pnbinom, c(1, 5), m, 1.2 / 2.2), both(pnbinom, c(1, 5), 1.2, mu = m))
            }), list(p = 0.3, m = 2.5), "real p; real m;")
  b <- cl_stan(code = "parameters { real q; } model { target += normal_cdf(q | 1, 2) +
    gamma_cdf(q | 2, 3) + poisson_cdf(2 | q) + exponential_cdf(q | 2); }")()
  expect_equal(as.vector(b(q = 0.7)), pnorm(0.7, 1, 2) + pgamma(0.7, 2, 3) + ppois(2, 0.7) +
                 pexp(0.7, 2))
})

test_that("densities of the library", {
  L <- matrix(c(1.5, 0.4, 0, 0.8), 2)
  check_sum(c("beta_neg_binomial_lpmf({0, 3} | r, 2, 1.5) + hypergeometric_lpmf(2 | 4, 5, 3) * r",
              "discrete_range_lpmf({2, 3} | 1, 4) * r",
              "multi_student_t_cholesky_lpdf(v | r, [0.1, 0.2]', L)",
              "multi_student_t_cholesky_lpdf({v, v} | r, [0.1, 0.2]', L)",
              "multinomial_logit_lpmf({1, 4} | v)"),
            function(p) with(p, {
              n <- c(0, 3)
              z <- forwardsolve(L, v - c(0.1, 0.2))
              c(lbeta(n + r, 3.5) - lbeta(r, 2) + lgamma(n + 1.5) - lgamma(n + 1) - lgamma(1.5),
                dhyper(2, 5, 3, 4, log = TRUE) * r, -2 * log(4) * r,
                3 * (lgamma(r / 2 + 1) - lgamma(r / 2) - log(r * pi) - log(det(L)) -
                       (r / 2 + 1) * log(1 + sum(z^2) / r)),
                dmultinom(c(1, 4), prob = exp(v), log = TRUE))
            }), list(r = 2.3, v = c(0.3, -0.5)), "real r; vector[2] v;", "matrix[2, 2] L;",
            list(L = L))
})

test_that("functions of numbers, of shapes and of orders", {
  check_sum(c("trigamma(b) + std_normal_qf(a) + std_normal_log_qf(-b) + (-b) + minus(a) + plus(a)",
              "binomial_coefficient_log(7.5, b) + log_falling_factorial(5.5, b) + ldexp(a, 3)",
              "log_rising_factorial(b, 2.5) + inc_beta(b, 2, a)",
              "modified_bessel_second_kind(1, b)",
              "add(a, b) * multiply(a, b) + subtract(a, b) / divide(b, 2.0) + a * divide(7, 2)",
              "a * (is_inf(1 / d[1]) + 10 * is_nan(d[1] / d[1]) + 100 * is_inf(d[2]))",
              "a * (logical_negation(0) + 10 * logical_negation(3) + machine_precision() * 1e16)",
              "a * is_nan(not_a_number()) + a * to_int(d[2]) * 10",
              "a * log_modified_bessel_first_kind(0, d[2])",
              "a * modified_bessel_first_kind(1, d[2])",
              "a * bessel_second_kind(1, d[2]) + a * quantile(w, 0.3) + a * sum(quantile(w, p))"),
            function(p) with(p, {
              w <- c(3, 1, 2)
              c(trigamma(b), qnorm(a), qnorm(exp(-b)), -b, -a, a,
                lgamma(8.5) - lgamma(b + 1) - lgamma(8.5 - b), lgamma(6.5) - lgamma(6.5 - b), 8 * a,
                lgamma(b + 2.5) - lgamma(b), pbeta(a, b, 2), besselK(b, 1),
                (a + b) * a * b, (a - b) / (b / 2), 3 * a, a * (1 + 10), a, a * 2^-52 * 1e16, a,
                20 * a, a * log(besselI(2.5, 0)), a * besselI(2.5, 1), a * besselY(2.5, 1),
                a * quantile(w, 0.3), a * quantile(w, c(0, 0.6)))
            }), list(a = 0.3, b = 1.7), "real a; real b;",
            "vector[2] d; vector[3] w; array[2] real p;",
            list(d = c(0, 2.5), w = c(3, 1, 2), p = c(0, 0.6)))
  ones <- c("v' * to_vector(sort_desc(w))", "v[sort_indices_asc(w)][1] * 2",
            "rep_row_vector(v[1], 2) * v[2:3] + rep_matrix(v', 2)[2] * w + rep_matrix(v, 2)[2, 1]",
            "zeros_vector(3)' * v + zeros_row_vector(3) * v + ones_row_vector(3) * v",
            "sum(zeros_array(2)) + sum(ones_array(2)) * v[1] + sum(ones_int_array(3)) * v[2]",
            "sum(zeros_int_array(2)) * v[1] + one_hot_vector(3, 2)' * v",
            "one_hot_row_vector(3, 3) * v + sum(one_hot_array(3, 1)[1:2]) * v[1]",
            "one_hot_int_array(3, 2)[2] * v[2] + linspaced_row_vector(3, 1, 2) * v",
            "linspaced_array(3, 1, 2)[2] * v[1] + uniform_simplex(4)[4] * v[2]",
            "to_row_vector(v) * w + to_array_2d(m)[2, 1] + to_array_1d({{v[1], v[2]}, {1, 2}})[2]",
            "to_matrix(v')[1, 2] + transpose(v) * w + transpose(m)[2, 1] + rows(v') + cols(v)",
            "dims(m)[2] * v[1] + sum(elt_multiply(v, w)) + sum(elt_divide(v, w))",
            "sum(cov_exp_quad({0.1, 0.5}, v[3], 0.7))")
  check_sum(ones, function(p) with(p, {
    w <- c(2, 5, 1)
    c(v * c(5, 2, 1), 2 * v[3], v[1] * sum(v[2:3]), sum(v * w), v[2], sum(v), 2 * v[1], 3 * v[2],
      v[2], v[3], v[1], v[2], v * c(1, 1.5, 2), 1.5 * v[1], v[2] / 4, v * w, m[2, 1], v[2], v[2],
      v * w, m[1, 2], 2, 3 * v[1], v * w, v / w,
      v[3]^2 * (2 + 2 * exp(-0.16 / (2 * 0.49))))
  }), list(v = c(0.3, -1, 2), m = matrix(1:6 / 5, 2)), "vector[3] v; matrix[2, 3] m;",
  "vector[3] w;", list(w = c(2, 5, 1)))
})

test_that("functions of complex matrices and hypergeometric series of data", {
  M <- matrix(c(2, 1i, -1, 3 + 1i), 2)
  H <- M + Conj(t(M))
  b <- cl_stan(code = "data { complex_matrix[2, 2] M; complex_matrix[2, 2] H; matrix[2, 2] A; }
    transformed data { vector[7] far;
      tuple(complex_matrix[2, 2], complex_matrix[2, 2]) s = complex_schur_decompose(M);
      tuple(complex_matrix[2, 2], complex_matrix[2, 2]) r = complex_schur_decompose(A);
      complex_matrix[2, 2] V = eigenvectors_sym(H);
      tuple(complex_matrix[2, 2], vector[2]) e = eigendecompose_sym(H);
      tuple(complex_matrix[2, 2], vector[2], complex_matrix[2, 2]) u = svd(M);
      far[1] = max(abs(s.1 * s.2 * conj(s.1') - M)) + abs(s.2[2, 1]);
      far[2] = max(abs(r.1 * r.2 * conj(r.1') - A)) + abs(r.2[2, 1]);
      far[3] = max(abs(H * V - V * diag_matrix(to_vector(e.2) + 0i)));
      far[4] = max(abs(H * e.1 - e.1 * diag_matrix(e.2 + 0i)));
      far[5] = max(abs(u.1 * diag_matrix(u.2 + 0i) * conj(u.3') - M)) + max(abs(svd_V(M) - u.3));
      far[6] = abs(hypergeometric_3F2([1, 2, 3]', [4, 5]', 0.5) -
                   hypergeometric_pFq([1, 2, 3]', [4, 5]', 0.5));
      far[7] = abs(rows_dot_product(M, H)[1] - (M[1, 1] * H[1, 1] + M[1, 2] * H[1, 2])) +
               abs(rows_dot_self(M)[1] - 5) + abs(minus(M[1, 2]) - 1);
      real F = hypergeometric_3F2([1, 2, 3]', [4, 5]', 0.5);
    } parameters { real a; }")(list(M = M, H = H, A = matrix(c(2, 1, -1, 3), 2)))
  found <- environment(b)$state$home
  expect_lt(max(found$far), 1e-12)
  k <- 0:60
  series <- function(a) exp(lgamma(a + k) - lgamma(a))
  expect_equal(found$F, sum(series(1) * series(2) * series(3) / (series(4) * series(5)) * 0.5^k /
                              factorial(k)))
})

# arguments, and the distribution function; for counts the probabilities of 0, 1, ...
skew_normal_below <- function(q) {
  vapply(q, function(q) integrate(function(y) 2 * dnorm(y - 1) * pnorm(2 * (y - 1)), -Inf, q)$value,
         0)
}
exp_mod_below <- function(q) {
  pnorm(q, 1, 2) - exp(-0.5 * (q - 1) + 0.5) * pnorm(q, 1 + 0.5 * 4, 2)
}
drawn <- list(
  cauchy = list("1, 2", function(q) pcauchy(q, 1, 2)),
  student_t = list("4, 1, 2", function(q) pt((q - 1) / 2, 4)),
  double_exponential = list("1, 2", function(q) {
    ifelse(q < 1, exp((q - 1) / 2) / 2, 1 - exp((1 - q) / 2) / 2)
  }),
  logistic = list("1, 2", function(q) plogis(q, 1, 2)),
  gumbel = list("1, 2", function(q) exp(-exp((1 - q) / 2))),
  lognormal = list("1, 2", function(q) plnorm(q, 1, 2)),
  chi_square = list("3", function(q) pchisq(q, 3)),
  inv_chi_square = list("3", function(q) 1 - pchisq(1 / q, 3)),
  scaled_inv_chi_square = list("3, 2", function(q) 1 - pchisq(12 / q, 3)),
  exponential = list("3", function(q) pexp(q, 3)),
  inv_gamma = list("3, 2", function(q) 1 - pgamma(1 / q, 3, 2)),
  weibull = list("3, 2", function(q) pweibull(q, 3, 2)),
  frechet = list("3, 2", function(q) exp(-(q / 2)^-3)),
  rayleigh = list("3", function(q) 1 - exp(-q^2 / 18)),
  pareto = list("3, 2", function(q) 1 - (3 / q)^2),
  pareto_type_2 = list("1, 3, 2", function(q) 1 - (1 + (q - 1) / 3)^-2),
  beta = list("3, 2", function(q) pbeta(q, 3, 2)),
  beta_proportion = list("0.3, 2", function(q) pbeta(q, 0.6, 1.4)),
  uniform = list("-1, 2", function(q) punif(q, -1, 2)),
  skew_normal = list("1, 1, 2", skew_normal_below),
  exp_mod_normal = list("1, 2, 0.5", exp_mod_below),
  von_mises = list("1, 2", function(q) {
    vapply(q, function(q) {
      integrate(function(y) exp(2 * cos(y - 1)), 1 - pi, q)$value / (2 * pi * besselI(2, 0))
    }, 0)
  }),
  normal = list("1, 2", function(q) pnorm(q, 1, 2)),
  gamma = list("3, 2", function(q) pgamma(q, 3, 2)),
  loglogistic = list("3, 2", function(q) 1 / (1 + (q / 3)^-2)),
  skew_double_exponential = list("1, 2, 0.3", function(q) {
    ifelse(q < 1, 0.3 * exp(-0.7 * (1 - q)), 1 - 0.7 * exp(-0.3 * (q - 1)))
  }),
  bernoulli = list("0.3", dbinom(0:1, 1, 0.3)),
  bernoulli_logit = list("0.3", dbinom(0:1, 1, plogis(0.3))),
  binomial = list("4, 0.3", dbinom(0:4, 4, 0.3)),
  binomial_logit = list("4, 0.3", dbinom(0:4, 4, plogis(0.3))),
  beta_binomial = list("3, 2, 1.5", choose(3, 0:3) * beta(0:3 + 2, 4.5 - 0:3) / beta(2, 1.5)),
  hypergeometric = list("4, 5, 3", dhyper(0:4, 5, 3, 4)),
  discrete_range = list("1, 3", c(0, 1, 1, 1) / 3),
  poisson = list("1.3", dpois(0:9, 1.3)),
  poisson_log = list("0.3", dpois(0:9, exp(0.3))),
  neg_binomial = list("3, 2", dnbinom(0:14, 3, 2 / 3)),
  neg_binomial_2 = list("3, 2", dnbinom(0:39, 2, mu = 3)),
  neg_binomial_2_log = list("0.3, 2", dnbinom(0:19, 2, mu = exp(0.3))),
  beta_neg_binomial = list("2, 3, 1.4", {
    k <- 0:40
    exp(lbeta(k + 2, 4.4) - lbeta(2, 3) + lgamma(k + 1.4) - lgamma(k + 1) - lgamma(1.4))
  }))

# Random numbers of a program with these transformed data.
random_of <- function(declarations) {
  set.seed(3)
  code <- sprintf("transformed data { int N = 1500; %s } parameters { real a; }", declarations)
  environment(cl_stan(code = code)())$state$home
}

expect_drawn <- function(x, want, name) {
  p <- if (is.function(want)) {
    suppressWarnings(ks.test(x, want))$p.value
  } else {
    last <- max(which(rev(cumsum(rev(want))) > 0.01)) # rare counts together
    want <- c(want[seq_len(last - 1L)], 1 - sum(want[seq_len(last - 1L)]))
    none <- want == 0
    n <- tabulate(pmin(x, last - 1L) + 1L, last)
    tested <- suppressWarnings(chisq.test(n[!none], p = want[!none])) # on few rare counts
    if (any(n[none] > 0)) 0 else tested$p.value
  }
  expect_gt(p, 1e-4, label = name)
}

test_that("random numbers have their distributions", {
  count <- !vapply(drawn, function(row) is.function(row[[2]]), NA)
  first <- sub("^[^,]*", "", vapply(drawn, `[[`, "", 1))
  given <- sub(",.*", "", vapply(drawn, `[[`, "", 1))
  given <- ifelse(count & grepl("^[0-9]+$", given) & names(drawn) %in%
                    c("binomial", "binomial_logit", "beta_binomial", "hypergeometric",
                      "discrete_range"),
                  sprintf("rep_array(%s, N)", given), sprintf("rep_vector(%s, N)", given))
  found <- random_of(paste(sprintf("array[N] %s x_%s = %s_rng(%s%s);",
                                   ifelse(count, "int", "real"), names(drawn), names(drawn), given,
                                   first), collapse = "\n"))
  for (name in names(drawn)) expect_drawn(found[[paste0("x_", name)]], drawn[[name]][[2]], name)
})

test_that("random categories, vectors and matrices", {
  each <- function(type, name, call) {
    sprintf("array[N] %s %s; for (n in 1:N) %s[n] = %s;", type, name, name, call)
  }
  S <- "[[2, 0.5], [0.5, 1]]"
  found <- random_of(paste(
    each("real", "z", "std_normal_rng()"),
    each("int", "cat", "categorical_rng([0.2, 0.5, 0.3]')"),
    each("int", "cat_logit", "categorical_logit_rng([0, 1, -1]')"),
    each("int", "ord", "ordered_logistic_rng(0.3, [-1, 0.5]')"),
    each("int", "ord_probit", "ordered_probit_rng(0.3, [-1, 0.5]')"),
    each("int", "multi", "multinomial_rng([0.2, 0.8]', 3)[2]"),
    each("int", "multi_logit", "multinomial_logit_rng([0, 1]', 3)[2]"),
    each("int", "multi_dirichlet", "dirichlet_multinomial_rng([1, 1]', 3)[2]"),
    each("int", "sum_of", "poisson_binomial_rng([0.2, 0.5]')"),
    each("int", "glm", "bernoulli_logit_glm_rng([[1, 2]], 0.1, [0.3, -0.4]')[1]"),
    each("int", "log_glm", "poisson_log_glm_rng([[1, 2]], 0.1, [0.3, -0.4]')[1]"),
    each("real", "dir", "dirichlet_rng([2, 1, 3]')[3]"),
    each("real", "normal", sprintf("[1, 1] * multi_normal_rng([1, 2]', %s)", S)),
    each("vector[2]", "pair", sprintf("multi_normal_cholesky_rng([1, 2]', cholesky_decompose(%s))",
                                      S)),
    each("vector[2]", "prec", sprintf("multi_normal_prec_rng([1, 2]', inverse(%s))", S)),
    each("vector[2]", "t", sprintf("multi_student_t_rng(4, [1, 2]', %s)", S)),
    each("vector[2]", "t_root", "multi_student_t_cholesky_rng(4, [1, 2]', [[2, 0], [1, 3]])"),
    each("real", "wish", sprintf("quad_form_sym(wishart_rng(5, %s), [1, 1]')", S)),
    each("real", "inv_wish", sprintf("1 / inv_wishart_rng(5, %s)[2, 2]", S)),
    each("real", "wish_root", "wishart_cholesky_rng(5, [[1, 0], [0.5, 2]])[1, 1]^2"),
    each("real", "inv_root", "1 / inv_wishart_cholesky_rng(5, [[1, 0], [0.5, 2]])[1, 1]^2"),
    each("real", "lkj", "lkj_corr_rng(3, 0.5)[3, 1]"),
    each("real", "lkj_root", "lkj_corr_cholesky_rng(3, 0.5)[2, 1]"),
    "array[3] vector[2] m = {[0, 100]', [10, 100]', [20, 100]'};",
    "matrix[2, 2] I = identity_matrix(2);",
    "array[4, 3] vector[2] several = {multi_normal_rng(m, I), multi_normal_prec_rng(m, I),",
    "multi_student_t_rng(50, m, I), multi_student_t_cholesky_rng(50, m, I)};",
    "array[N] vector[2] simplices = dirichlet_rng(rep_array([3, 2]', N));"))
  same <- function(x, want) expect_drawn(x, want, deparse(substitute(x)))
  same(found$z, pnorm)
  same(found$cat - 1, c(0.2, 0.5, 0.3))
  same(found$cat_logit - 1, exp(c(0, 1, -1)) / sum(exp(c(0, 1, -1))))
  same(found$ord - 1, diff(c(0, plogis(c(-1, 0.5) - 0.3), 1)))
  same(found$ord_probit - 1, diff(c(0, pnorm(c(-1, 0.5) - 0.3), 1)))
  same(found$multi, dbinom(0:3, 3, 0.8))
  same(found$multi_logit, dbinom(0:3, 3, plogis(1)))
  same(found$multi_dirichlet, rep(0.25, 4))
  same(found$sum_of, c(0.4, 0.5, 0.1))
  same(found$glm, dbinom(0:1, 1, plogis(0.1 + 0.3 - 0.8)))
  same(found$log_glm, dpois(0:9, exp(0.1 + 0.3 - 0.8)))
  same(found$dir, function(q) pbeta(q, 3, 3))
  same(found$normal, function(q) pnorm(q, 3, 2)) # 2 + 1 + 2 * 0.5
  for (pair in list(found$pair, found$prec)) {
    same(pair[, 1] - pair[, 2], function(q) pnorm(q, -1, sqrt(2)))
  }
  same(found$t[, 1] + found$t[, 2], function(q) pt((q - 3) / 2, 4))
  same(found$t_root[, 2], function(q) pt((q - 2) / sqrt(10), 4))
  same(found$wish, function(q) pchisq(q / 4, 5))
  same(found$inv_wish, function(q) pchisq(q * 1, 4))
  same(found$wish_root, function(q) pchisq(q, 5))
  same(found$inv_root, function(q) pchisq(q, 4))
  for (r in list(found$lkj, found$lkj_root)) same((r + 1) / 2, punif)
  for (i in 1:4) expect_lt(max(abs(found$several[i, , ] - cbind(c(0, 10, 20), 100))), 5)
  same(found$simplices[, 1], function(q) pbeta(q, 3, 2))
  expect_equal(rowSums(found$simplices), rep(1, 1500))
})

test_that("solvers of equations under their other names", {
  tol <- c("", "_tol")
  calls <- paste0("ode_", rep(c("adams", "ckrk", "rk45", "bdf"), each = 2), tol,
                  "(fall, [1]', 0, {0.5, 1.0}", c("", ", 1e-9, 1e-9, 10000"), ", k)[2, 1]")
  calls <- c(calls, paste0("ode_adjoint_tol_ctl(fall, [1]', 0, {0.5, 1.0}, 1e-9, [1e-9]', 1e-9, ",
                           "[1e-9]', 1e-9, 1e-9, 10000, 50, 1, 1, 1, k)[2, 1]"),
             paste0(c("integrate_ode_adams", "integrate_ode_rk45"),
                    "(decay, {1.0}, 0, {0.5, 1.0}, {k}, {0.0}, {0})[2, 1]"),
             "reduce_sum_static(part, {1.0, 2.0, 3.0}, 1, k)",
             "sum(map_rect(shard, [k]', {[1]', [2]'}, {{3.0}, {4.0}}, {{1}, {2}}))")
  check_stan_case(stan_case("real<lower=0> k;",
                            paste0("target += ", calls, ";", collapse = "\n"), list(k = 0.8),
                            function(p) {
                              11 * exp(-p$k) - 6 * p$k + (p$k * 1 + 3 * 1) + (p$k * 2 + 4 * 2)
                            }, functions = "
    array[] real decay(real t, array[] real y, array[] real theta, array[] real x_r,
                       array[] int x_i) { return {-theta[1] * y[1]}; }
    vector fall(real t, vector y, real k) { return -k * y; }
    vector shard(vector phi, vector theta, data array[] real x_r, data array[] int x_i) {
      return [phi[1] * theta[1] + x_r[1] * x_i[1]]'; }
    real part(array[] real x, int a, int b, real k) { return -k * sum(x); }"), "solvers",
    tolerance = 1e-4, digits = 1e-6)
})
