# Special functions and rare distributions of Stan programs.

test_that("special functions", {
  check_sum(c("logical_or(a, 0) + 2 * logical_and(a, 0) + 4 * logical_eq(a, b) + modulus(7, 4)",
              "8 * logical_neq(a, b) + 16 * logical_lt(a, b) + 32 * logical_gt(a, b)",
              "64 * logical_lte(a, a) + 128 * logical_gte(b, a) + log_softplus(a)",
              "log_softplus(-800 * a) * 1e-3 + log_inv_logit_diff(b, a) + binary_log_loss(1, a)",
              "binary_log_loss(0, a) + inv_erfc(a) + hypergeometric_1F0(b, a)"),
            function(p) with(p, c(1, 3, 8, 16, 64, 128, log(log1p(exp(a))), -0.8 * a,
                                  log(plogis(b) - plogis(a)), -log(a), -log1p(-a),
                                  -qnorm(a / 2) / sqrt(2), (1 - a)^-b)),
            list(a = 0.3, b = 1.7), "real a; real b;")
  lambert <- function(x, from, to) {
    uniroot(function(w) w * exp(w) - x, c(from, to), tol = 1e-15)$root
  }
  for (x in c(-0.36, -0.2, 0, 1e-8, 0.5, 3, 1e5)) {
    check_sum("lambert_w0(x)", function(p) lambert(p$x, -1, 20), list(x = x), "real x;")
  }
  for (x in c(-0.36, -0.28, -0.26, -0.1, -0.01)) {
    check_sum("lambert_wm1(x) * 2", function(p) 2 * lambert(p$x, -40, -1), list(x = x), "real x;")
  }
  check_sum("sum(hypergeometric_2F1(1, 1, 2, z) + [inv_inc_beta(2, 3, 0.4), l])
             * a", function(p) p$a * (-2 * log(0.7) / 0.3 + qbeta(0.4, 2, 3) - 0.5), list(a = 2),
            "real a;", "real z; real l;", list(z = 0.3, l = -0.5))
  found <- function(f, ...) statcl:::stan_special_functions[[f]](...)
  expect_equal(found("lambert_wm1", -1e-100) + log(-found("lambert_wm1", -1e-100)), log(1e-100))
  expect_equal(found("lambert_w0", c(-exp(-1), 1e300)), c(-1, 684.2472086297608))
  expect_equal(found("hypergeometric_2F1", 0.5, 0.5, 1.5, 0.9^2), asin(0.9) / 0.9)
  expect_equal(found("hypergeometric_2F1", 1, 1, 2, 0.999), -log(0.001) / 0.999)
  expect_equal(found("hypergeometric_2F1", 1, 1, 2, -50), log(51) / 50)
  expect_equal(found("hypergeometric_2F1", 1, 2, 4, 1), 3)
  expect_equal(found("hypergeometric_2F1", -2, 3, 1, 2), 1 - 12 + 24)
  expect_identical(found("hypergeometric_2F1", 1, 1, 2, 1.5), NaN)
  expect_equal(found("hypergeometric_3F2", c(1, 1, 1), c(2, 2), 0.4),
               sum(0.4^(0:200) / (1:201)^2))
  expect_equal(found("hypergeometric_pFq", 1, 2, -3), (1 - exp(-3)) / 3)
  expect_equal(found("hypergeometric_pFq", numeric(), 1.5, 1), sinh(2) / 2)
})

test_that("hidden Markov models: states, by all paths", {
  set.seed(1)
  omega <- matrix(log(runif(8)), 2)
  gamma <- matrix(c(0.7, 0.4, 0.3, 0.6), 2)
  rho <- c(0.2, 0.8)
  paths <- as.matrix(expand.grid(rep(list(1:2), 4)))
  weight <- apply(paths, 1, function(s) {
    rho[s[1]] * prod(gamma[cbind(s[-4], s[-1])]) * exp(sum(omega[cbind(s, 1:4)]))
  })
  want <- rbind(colSums(weight * (paths == 1)), colSums(weight * (paths == 2))) / sum(weight)
  b <- cl_stan(code = "data { matrix[2, 4] o; matrix[2, 2] g; vector[2] r; }
    parameters { real a; } model { a ~ std_normal(); }
    generated quantities { matrix[2, 4] p = hmm_hidden_state_prob(o, g, r);
      array[4] int s = hmm_latent_rng(o, g, r); }")(list(o = omega, g = gamma, r = rho))
  draws <- as.matrix(cl_sample(b, chains = 1, warmup = 50, iter = 2000, seed = 1))
  expect_equal(unname(draws[1, 2:9]), as.vector(want))
  paths <- apply(draws[, 10:13], 1, function(s) sum((s - 1) * 2^(0:3)) + 1)
  fit <- suppressWarnings(chisq.test(tabulate(paths, 16), p = weight / sum(weight)))
  expect_gt(fit$p.value, 1e-4)
})

test_that("densities and distribution functions", {
  check <- function(terms, density, point, parameters, data = "", values = list()) {
    check_sum(terms, density, point, parameters, data, values)
  }
  counts <- function(theta) {
    p <- 1
    for (t in theta) p <- c(p * (1 - t), 0) + c(0, p * t)
    p
  }
  check(c("poisson_binomial_lpmf(2 | t) + poisson_binomial_lpmf({0, 3} | t)",
          "poisson_binomial_lcdf(1 | t) + poisson_binomial_lccdf(1 | t)",
          "poisson_binomial_cdf(0 | t)",
          "poisson_binomial_lpmf({1, 2} | {t, 0.5 * t})"),
        function(p) {
          q <- counts(p$t)
          c(log(q[c(3, 1, 4)]), log(sum(q[1:2])), log(sum(q[3:4])), q[1], log(q[2]),
            log(counts(p$t / 2)[3]))
        }, list(t = c(0.2, 0.5, 0.7)), "vector[3] t;")
  mass <- function(k, r, a, b) {
    exp(lbeta(k + r, a + b) - lbeta(r, a) + lgamma(k + b) - lgamma(k + 1) - lgamma(b))
  }
  check(c("beta_neg_binomial_lcdf({0, 3} | r, a, b) + beta_neg_binomial_lccdf(2 | r, a, b)",
          "discrete_range_lcdf(3 | 2, 6) + discrete_range_lccdf({3, 1} | 2, 6)",
          "dirichlet_multinomial_lpmf({2, 0, 3} | [a, b, r]')"),
        function(p) with(p, c(log(mass(0, r, a, b)), log(sum(mass(0:3, r, a, b))),
                              log1p(-sum(mass(0:2, r, a, b))), log(0.4), log(0.6), 0,
                              log(10) + log(integrate(function(x) {
                                # the share of the first, and of the third in the rest
                                dbeta(x, a, b + r) * x^2 * (1 - x)^3
                              }, 0, 1, rel.tol = 1e-12)$value) + lbeta(b, r + 3) - lbeta(b, r))),
        list(r = 2.5, a = 3, b = 1.4), "real<lower=0> r; real<lower=0> a; real<lower=0> b;")
  below <- function(f, y, ...) integrate(f, -pi, y, ..., rel.tol = 1e-12)$value
  von_mises <- function(y, mu, k) exp(k * cos(y - mu)) / (2 * pi * besselI(k, 0))
  laplace <- function(y, mu, s, t) {
    2 * t * (1 - t) / s * exp(-2 / s * ifelse(y < mu, (1 - t) * (mu - y), t * (y - mu)))
  }
  check(c("von_mises_lcdf([0.5, -2] | m, k) + von_mises_lccdf(1 | m, k)",
          "skew_double_exponential_lcdf([0.1, 2] | m, k, t)",
          "skew_double_exponential_lccdf([0.1, 2] | m, k, t)"),
        function(p) with(p, {
          low <- vapply(c(0.1, 2), function(y) {
            integrate(laplace, -60, min(y, m), m, k, t, rel.tol = 1e-12)$value +
              if (y > m) integrate(laplace, m, y, m, k, t, rel.tol = 1e-12)$value else 0
          }, 0)
          c(log(below(von_mises, 0.5, m, k)), log(below(von_mises, -2, m, k)),
            log1p(-below(von_mises, 1, m, k)), log(low), log1p(-low))
        }), list(m = 0.7, k = 1.3, t = 0.3), "real m; real<lower=0> k; real<lower=0> t;")
})

test_that("the von Mises distribution from wide to narrow", {
  density <- function(t, m, k) exp(-2 * k * sin((t - m) / 2)^2)
  # its integral from -pi on, in pieces that are as long as it is wide
  below <- function(y, m, k) {
    at <- sort(c(-pi, y, outer(c(-24, -12, -6, -3, 0, 3, 6) / sqrt(k), m + 2 * pi * -1:1, "+")))
    at <- unique(at[at >= -pi & at <= y])
    sum(mapply(function(a, b) integrate(density, a, b, m, k, rel.tol = 1e-10, abs.tol = 0,
                                        stop.on.error = FALSE)$value, at[-length(at)], at[-1L]))
  }
  log_share <- function(y, m, k) log(below(y, m, k)) - log(below(pi, m, k))
  b <- cl_stan(code = "parameters { real y; real m; real<lower=0> k; }
    model { target += von_mises_lcdf(y | m, k); }")()
  each_engine(for (k in 10^(-1:6)) for (m in c(-2.5, 0.4, 3)) for (z in c(-4, -1, 0, 2)) {
    y <- m + z / sqrt(k)
    if (abs(y) > pi) next
    found <- b(y = y, m = m, k = k)
    label <- paste(y, m, k)
    expect_equal(as.vector(found), log_share(y, m, k), tolerance = 1e-9, info = label)
    ends <- density(c(-pi, y), m, k) / below(y, m, k)
    by_k <- (log_share(y, m, 1.001 * k) - log_share(y, m, 0.999 * k)) / (0.002 * k)
    slopes <- attr(found, "gradient")
    expect_equal(c(slopes$y, slopes$m), c(ends[2], ends[1] - ends[2]), tolerance = 1e-9,
                 info = label)
    expect_lt(abs(slopes$k - by_k), 1e-5 * (abs(by_k) + 1 / k))
  })
  several <- cl_stan(code = "parameters { vector[2] m; real<lower=0> k; }
    model { target += von_mises_lcdf(0.5 | m, k); }")()
  expect_equal(as.vector(several(m = c(0.3, 2), k = 5)),
               log_share(0.5, 0.3, 5) + log_share(0.5, 2, 5),
               tolerance = 1e-9)
})

test_that("densities of matrices", {
  l <- matrix(c(1.2, 0.3, -0.4, 0, 0.8, 0.2, 0, 0, 1.5), 3)
  s <- matrix(c(0.9, -0.2, 0.1, 0, 1.1, 0.3, 0, 0, 0.7), 3)
  wishart <- function(w, nu, v) {
    k <- nrow(w)
    0.5 * (nu - k - 1) * log(det(w)) - 0.5 * sum(diag(solve(v, w))) - 0.5 * nu * k * log(2) -
      0.5 * nu * log(det(v)) - k * (k - 1) / 4 * log(pi) - sum(lgamma(0.5 * (nu + 1 - seq_len(k))))
  }
  jacobian <- function(l) 3 * log(2) + sum((3:1) * log(diag(l)))
  check_sum(c("wishart_cholesky_lpdf(l | nu, s) + inv_wishart_cholesky_lpdf(l | nu, s)",
              "multi_gp_cholesky_lpdf(l | s, w) + lkj_cov_lpdf(l * l' | w, w + 1, nu)"),
            structure(function(p) with(p, {
              x <- tcrossprod(l)
              v <- tcrossprod(s)
              d <- sqrt(diag(x))
              j <- 1:2
              # an inverse is a Wishart matrix of the inverse scale: |x|^-(k + 1) changes variables
              c(wishart(x, nu, v) + jacobian(l),
                wishart(solve(x), nu, solve(v)) - 4 * log(det(x)) + jacobian(l),
                -0.5 * w * rowSums(t(solve(s, t(l)))^2) + 1.5 * log(w) - 1.5 * log(2 * pi) -
                  sum(log(diag(s))), dlnorm(d, w, w + 1, log = TRUE),
                (nu - 1) * log(det(x / outer(d, d))) - 1.5 * log(pi) +
                  sum(lgamma(nu + 1) - lgamma(nu + 1 - j / 2)))
            }), moves = "lower"), list(l = l, s = s, nu = 4.5, w = c(0.5, 1, 2)),
            "matrix[3, 3] l; matrix[3, 3] s; real nu; vector[3] w;")
})

test_that("random numbers", {
  set.seed(2)
  draw <- function(f, ...) {
    simplify2array(lapply(1:4000, function(i) statcl:::stan_rare_random[[f]](...)))
  }
  near <- function(x, p) {
    expect_gt(chisq.test(tabulate(pmin(x, length(p) - 1) + 1, length(p)), p = p)$p.value, 1e-4)
  }
  near(draw("poisson_binomial_rng", c(0.2, 0.5)), c(0.4, 0.5, 0.1))
  p <- exp(lbeta(0:5 + 2, 4.4) - lbeta(2, 3) + lgamma(0:5 + 1.4) - lgamma(1:6) - lgamma(1.4))
  near(draw("beta_neg_binomial_rng", 2, 3, 1.4), c(p, 1 - sum(p)))
  near(draw("multinomial_logit_rng", log(c(1, 3)), 2)[2, ], dbinom(0:2, 2, 0.75))
  near(draw("dirichlet_multinomial_rng", c(1, 1), 3)[1, ], rep(0.25, 4))
  near(draw("poisson_log_glm_rng", matrix(2, 1, 1), 0.1, -0.4), c(dpois(0:3, exp(-0.7)),
                                                                  ppois(3, exp(-0.7), FALSE)))
  same <- function(x, cdf) expect_gt(suppressWarnings(ks.test(x, cdf))$p.value, 1e-4)
  same(draw("loglogistic_rng", 2, 3), function(y) 1 / (1 + (y / 2)^-3))
  same(draw("skew_double_exponential_rng", 1, 2, 0.3), function(y) {
    ifelse(y < 1, 0.3 * exp(-0.7 * (1 - y)), 1 - 0.7 * exp(-0.3 * (y - 1)))
  })
  same(draw("multi_student_t_cholesky_rng", 4, c(1, 2), diag(c(2, 3)))[2, ], function(y) {
    pt((y - 2) / 3, 4)
  })
  s <- matrix(c(1, 0.5, 0, 2), 2)
  same(draw("wishart_cholesky_rng", 5, s)[1, 1, ]^2, function(y) pchisq(y, 5))
  same(draw("inv_wishart_cholesky_rng", 5, s)[1, 1, ]^2, function(y) 1 - pchisq(1 / y, 4))
})
