# Distributions of Stan programs: `y ~ name(arguments)` with values of data and parameters, against
# R's functions or formulas of the Stan functions reference.

test_that("densities of numbers and vectors", {
  each_case <- function(name) {
    row <- stan_continuous[[name]]
    model <- sprintf("y ~ %s(%s);", name, row[[2]])
    check_stan_case(stan_case(row[[1]], model, row[[3]],
                              function(p) do.call(row[[4]], p)), name)
  }
  for (name in names(stan_continuous)) each_case(name)
  # both series, and a time before the process begins
  y <- c(0.3, 0.5, 0.86, 0.89, 2.5)
  check_stan_case(stan_case("real<lower=0> a; real<lower=0, upper=1> b; real d;",
                            "y ~ wiener(a, 0.2, b, d);", list(a = 1.5, b = 0.9, d = -0.5),
                            function(p) sum(stan_wiener_density(y, p$a, 0.2, p$b, p$d)),
                            "vector[5] y;", list(y = y)), "wiener")
  early <- cl_stan(code = "parameters { real t; } model { 0.3 ~ wiener(1, t, 0.5, 0); }")
  expect_identical(as.vector(early()(t = 0.4)), -Inf)
  # a vector of data, with one parameter as a vector
  y <- c(0.2, 1.1, 2.3)
  for (name in c("normal", "cauchy", "gamma", "student_t")) {
    row <- stan_continuous[[name]]
    point <- row[[3]][-1]
    first <- names(point)[1]
    point[[first]] <- point[[first]] + c(0, 0.5, 1)
    declared <- sub(sprintf("real(<[^>]*>)? %s;", first), sprintf("vector\\1[3] %s;", first),
                    sub("real(<[^>]*>)? y;", "", row[[1]]))
    check_stan_case(stan_case(declared, sprintf("y ~ %s(%s);", name, row[[2]]), point,
                              function(p) sum(do.call(row[[4]], c(list(y), p))),
                              "vector[3] y;", list(y = y)), name)
  }
})

test_that("probabilities of counts and categories", {
  for (name in names(stan_discrete)) {
    row <- stan_discrete[[name]]
    density <- function(p) sum(do.call(row[[5]], c(list(row[[4]]), p)))
    values <- list(N = 3, y = row[[4]])
    check_stan_case(stan_case(row[[1]], sprintf("y ~ %s(%s);", name, row[[2]]), row[[3]], density,
                              "int N; array[N] int y;", values), name)
    # one after another
    loop <- sprintf("for (n in 1:N) target += %s_lpmf(y[n] | %s);", name, row[[2]])
    check_stan_case(stan_case(row[[1]], loop, row[[3]], density, "int N; array[N] int y;", values),
                    paste(name, "in a loop"))
  }
})

test_that("logarithms of rates far from zero", {
  y <- c(0, 3, 7)
  far <- c(-800, 400, 900)
  check_stan_case(stan_case("vector[3] e; real<lower=0> f;", "y ~ neg_binomial_2_log(e, f);",
                            list(e = far, f = 1.3), function(p) {
    phi <- p$f
    sum(lgamma(y + phi) - lgamma(phi) - lgamma(y + 1) +
          ifelse(far < 0, y, -phi) * (p$e - log(phi)))
  }, "array[3] int y;", list(y = y)), "neg_binomial_2_log", digits = 1e-12)
  b <- cl_stan(code = "data { array[3] int y; } parameters { vector[3] e; }
                       model { y ~ poisson_log(e); }")(list(y = y))
  found <- b(e = c(-800, -900, 2))
  expect_equal(as.vector(found), -2700 - log(6) + 14 - exp(2) - lgamma(8))
  expect_equal(attr(found, "gradient")$e, c(0, 3, 7 - exp(2)))
})

cumulative <- list(
  normal = list(c(0.3, 1, 2), function(q, m, s, ...) pnorm(q, m, s, ...)),
  cauchy = list(c(0.3, 1, 2), function(q, m, s, ...) pcauchy(q, m, s, ...)),
  logistic = list(c(0.3, 1, 2), function(q, m, s, ...) plogis(q, m, s, ...)),
  student_t = list(c(0.3, 4, 1, 2), function(q, n, m, s, ...) pt((q - m) / s, n, ...)),
  lognormal = list(c(0.3, 1, 2), function(q, m, s, ...) plnorm(q, m, s, ...)),
  exponential = list(c(0.3, 2), function(q, b, ...) pexp(q, b, ...)),
  gamma = list(c(0.8, 2, 1.5), function(q, a, b, ...) pgamma(q, a, b, ...)),
  inv_gamma = list(c(0.8, 2, 1.5), function(q, a, b, lower.tail, ...) {
    pgamma(1 / q, a, b, lower.tail = !lower.tail, ...)
  }),
  weibull = list(c(0.8, 2, 1.5), function(q, a, b, ...) pweibull(q, a, b, ...)),
  beta = list(c(0.3, 2, 1.5), function(q, a, b, ...) pbeta(q, a, b, ...)),
  gumbel = list(c(0.3, 1, 2), function(q, m, s, lower.tail, ...) {
    p <- exp(-exp(-(q - m) / s))
    log(if (lower.tail) p else 1 - p)
  }))

test_that("distribution functions", {
  for (name in names(cumulative)) {
    row <- cumulative[[name]]
    x <- row[[1]]
    names <- c("q", "a", "b", "c")[seq_along(x)]
    for (lower in c(TRUE, FALSE)) {
      model <- sprintf("target += %s_%s(q | %s);", name, if (lower) "lcdf" else "lccdf",
                       paste(names[-1], collapse = ", "))
      check_stan_case(stan_case(paste(sprintf("real<lower=0> %s;", names), collapse = " "), model,
                                as.list(stats::setNames(x, names)), function(p) {
                                  do.call(row[[2]], c(unname(p), list(lower.tail = lower,
                                                                     log.p = TRUE)))
                                }), paste(name, lower))
    }
  }
})

test_that("distribution functions that R lacks are integrals and sums", {
  rows <- stan_continuous[c("exp_mod_normal", "skew_normal", "loglogistic", "pareto_type_2",
                       "inv_chi_square", "scaled_inv_chi_square")]
  for (name in names(rows)) {
    row <- rows[[name]]
    for (lower in c(TRUE, FALSE)) {
      area <- function(p) {
        f <- function(y) exp(vapply(y, function(y) do.call(row[[4]], c(list(y), p[-1])), 0))
        from <- if (grepl("normal", name)) -Inf else if (name == "pareto_type_2") p$m else 0
        ends <- if (lower) c(from, p$y) else c(p$y, Inf)
        log(integrate(f, ends[1], ends[2], rel.tol = 1e-10)$value)
      }
      check_stan_case(stan_case(row[[1]], sprintf("target += %s_%s(y | %s);", name,
                                                  if (lower) "lcdf" else "lccdf", row[[2]]),
                                row[[3]], area), paste(name, lower), digits = 1e-8)
    }
  }
  n <- c(0, 4, 9, 3)
  N <- c(9, 9, 9, 5)
  below <- function(p) {
    Map(function(n, N) {
      k <- 0:N
      f <- exp(lchoose(N, k) + lbeta(k + p$a, N - k + p$b) - lbeta(p$a, p$b))
      c(log(sum(f[k <= n])), if (n < N) log(sum(f[k > n])) else 0)
    }, n, N)
  }
  check_stan_case(stan_case("real<lower=0> a; real<lower=0> b;",
                            paste("target += beta_binomial_lcdf(n | N, a, b);",
                                  "for (i in 1:2) target += beta_binomial_lccdf(n[i] | 9, a, b);",
                                  "target += beta_binomial_lccdf(n[4] | N[4], a, b);"),
                            list(a = 1.5, b = 2.5), function(p) {
                              sum(sapply(below(p), `[`, 1)) + sum(sapply(below(p), `[`, 2))
                            }, "array[4] int n; array[4] int N;", list(n = n, N = N)),
                  "beta_binomial")
})

# From `from` to y, as integrals and sums of the densities above.
below <- list(
  normal = -Inf, std_normal = -Inf, cauchy = -Inf, student_t = -Inf, double_exponential = -Inf,
  logistic = -Inf, gumbel = -Inf, lognormal = 0, chi_square = 0, inv_chi_square = 0,
  scaled_inv_chi_square = 0, exponential = 0, gamma = 0, inv_gamma = 0, weibull = 0, frechet = 0,
  rayleigh = 0, loglogistic = 0, pareto = 1.2, pareto_type_2 = 0.3, beta = 0, beta_proportion = 0,
  uniform = -1, skew_normal = -Inf, skew_double_exponential = -Inf)

test_that("each distribution has its three distribution functions", {
  check <- function(name, row, at, area) {
    call <- sprintf("%s_%s(%s | %s)", name, c("cdf", "lcdf", "lccdf"), at, row[[2]])
    model <- sprintf("target += %s + 2 * %s + 3 * %s;", call[1], call[2], call[3])
    check_stan_case(stan_case(row[[1]], model, row[[3]], function(p) {
      F <- area(p)
      prod(F) + 2 * sum(log(F)) + 3 * sum(log1p(-F))
    }), paste(name, "distribution functions"), digits = 1e-9)
  }
  for (name in names(below)) {
    row <- stan_continuous[[name]]
    check(name, row, "y", function(p) {
      # the lower end of three distributions is a parameter
      from <- switch(name, pareto = p$m, pareto_type_2 = p$m, uniform = p$a, below[[name]])
      f <- function(y) exp(do.call(row[[4]], c(list(y), p[-1])))
      integrate(f, from, p$y, rel.tol = 1e-12, stop.on.error = FALSE)$value
    })
  }
  for (name in c("bernoulli", "binomial", "beta_binomial", "poisson", "neg_binomial",
                 "neg_binomial_2")) {
    row <- stan_discrete[[name]]
    y <- if (name == "bernoulli") c(0, 0) else c(4, 1)
    check(name, row, sprintf("{%d, %d}", y[1], y[2]), function(p) {
      vapply(y, function(y) sum(exp(do.call(row[[5]], c(list(0:y), p)))), 0)
    })
  }
})

test_that("Owen's function is the integral", {
  at <- expand.grid(h = c(-3, -0.4, 0, 1.2, 2), a = c(-8, -1, -0.3, 0.9, 4))
  want <- function(h) {
    sum(1:25 * mapply(function(h, a) {
      integrate(function(x) exp(-0.5 * h^2 * (1 + x^2)) / (1 + x^2), 0, a, rel.tol = 1e-12)$value
    }, h, at$a)) / (2 * pi)
  }
  check_stan_case(stan_case("vector[25] h;", "target += w * owens_t(h, a);", list(h = at$h),
                            function(p) want(p$h), "row_vector[25] w; vector[25] a;",
                            list(w = 1:25, a = at$a)), "owens_t")
})

# By Gauss and Legendre's rule over start and delay, and the mean over the drift in closed form.
varied_at_nodes <- function(y, a, t, b, d, v, w, s) {
  k <- 1:19
  rule <- eigen(rbind(cbind(0, diag(k / sqrt(4 * k^2 - 1))), 0) +
                  cbind(rbind(0, diag(k / sqrt(4 * k^2 - 1))), 0), symmetric = TRUE)
  weight <- rule$vectors[1, ]^2
  delay <- t + s * (rule$values + 1) / 2
  inside <- vapply(b + w * rule$values / 2, function(b) {
    up <- a * (1 - b)
    mean <- (2 * d * up - d^2 * (y - delay) + v^2 * up^2) / (2 * (1 + v^2 * (y - delay)))
    sum(weight * exp(stan_wiener_density(y, a, delay, b, 0) + mean) / sqrt(1 + v^2 * (y - delay)))
  }, 0)
  log(sum(weight * inside))
}

test_that("Wiener processes whose drift, start and delay vary", {
  varied <- function(y, a, t, b, d, sv, sw, st) {
    over <- function(f, from, to) integrate(Vectorize(f), from, to, rel.tol = 1e-9)$value
    drift <- function(t, b) {
      if (y - t < 0.01) return(0)
      if (sv == 0) return(exp(stan_wiener_density(y, a, t, b, d)))
      over(function(d) exp(stan_wiener_density(y, a, t, b, d)) * dnorm(d, p_d, sv), p_d - 9 * sv,
           p_d + 9 * sv)
    }
    p_d <- d
    start <- function(t) {
      if (sw == 0) drift(t, b) else over(function(b) drift(t, b), b - sw / 2, b + sw / 2) / sw
    }
    log(if (st == 0) start(t) else over(start, t, min(t + st, y)) / st)
  }
  at <- list(y = 0.8, a = 1.5, t = 0.2, b = 0.4, d = 0.5, v = 0.7)
  real <- "real y; real a; real t; real b; real d; real v;"
  check_stan_case(stan_case(real, "y ~ wiener(a, t, b, d, v);", at,
                            function(p) do.call(varied, c(unname(p), 0, 0))), "drift",
                  digits = 1e-8)
  more <- c(at, w = 0.3, s = 0.4)
  check_stan_case(stan_case(paste(real, "real w; real s;"), "y ~ wiener(a, t, b, d, v, w, s);",
                            more, function(p) do.call(varied_at_nodes, p)), "all")
  b <- cl_stan(code = sprintf("parameters { %s real w; real s; } model { target +=
    wiener_lpdf([y, 0.5]' | a, t, b, d, v, w, s, 1e-4); }", real))()
  at <- function(...) as.vector(b(modifyList(more, list(...))))
  expect_equal(at(v = 0, w = 0), varied(0.8, 1.5, 0.2, 0.4, 0.5, 0, 0, 0.4) +
                 varied(0.5, 1.5, 0.2, 0.4, 0.5, 0, 0, 0.4), tolerance = 1e-8)
  expect_equal(at(s = 0, v = 0), varied(0.8, 1.5, 0.2, 0.4, 0.5, 0, 0.3, 0) +
                 varied(0.5, 1.5, 0.2, 0.4, 0.5, 0, 0.3, 0), tolerance = 1e-8)
  expect_identical(at(t = 0.6), -Inf)
  for (wrong in list(list(v = -1), list(w = 0.9), list(s = -1), list(t = -1))) {
    expect_true(is.nan(do.call(at, wrong)))
  }
})

test_that("truncation", {
  check_stan_case(stan_case("real m; real<lower=0> s;", "y ~ normal(m, s) T[0, 3];",
                            list(m = 1, s = 2), function(p) {
                              dnorm(1.4, p$m, p$s, log = TRUE) -
                                log(pnorm(3, p$m, p$s) - pnorm(0, p$m, p$s))
                            }, "real y;", list(y = 1.4)), "both")
  positive <- c(0.5, 1, 2)
  truncated <- function(model, norm) {
    check_stan_case(stan_case("vector[3] m; real<lower=0> s;", model,
                              list(m = c(0.1, 0.2, 0.3), s = 1.1), function(p) {
      sum(dnorm(positive, p$m, p$s, log = TRUE) - norm(p$m, p$s))
    }, "vector[3] y;", list(y = positive)), model)
  }
  truncated("y ~ normal(m, s) T[0, ];", function(m, s) pnorm(0, m, s, FALSE, TRUE))
  truncated("y ~ normal(m, s) T[0, 3];", function(m, s) log(pnorm(3, m, s) - pnorm(0, m, s)))
  truncated("y ~ normal(m, s) T[, ];", function(m, s) 0)
  own <- paste("real my_%1$s(real y, real m) { return normal_%1$s(y | m, 1); }",
               "real my_%1$s(real y, int k) { return k * y; }")
  check_stan_case(stan_case("real m;", "0.5 ~ my(m) T[-1, ]; 0.5 ~ my(m) T[-1, 2];", list(m = 0.4),
                            function(p) {
    2 * dnorm(0.5, p$m, log = TRUE) - pnorm(-1, p$m, lower.tail = FALSE, log.p = TRUE) -
      log(pnorm(2, p$m) - pnorm(-1, p$m))
  }, functions = paste(sprintf(own, c("lccdf", "lcdf", "lpdf")), collapse = "\n")), "own")
  check_stan_case(stan_case("real<lower=0> s;", "s ~ cauchy(0, 2.5) T[0, ];", list(s = 1.3),
                            function(p) dcauchy(p$s, 0, 2.5, log = TRUE) + log(2)), "lower")
  check_stan_case(stan_case("real<lower=0> l;", "for (i in 1:3) y[i] ~ poisson(l) T[1, ];",
                            list(l = 1.3), function(p) {
                              sum(dpois(c(1, 2, 5), p$l, log = TRUE) - ppois(0, p$l, FALSE, TRUE))
                            }, "array[3] int y;", list(y = c(1, 2, 5))), "counts")
})

test_that("densities of vectors and matrices", {
  S <- matrix(c(2, 0.5, 0.3, 0.5, 1.5, 0.2, 0.3, 0.2, 1), 3)
  y <- c(0.3, -1, 0.7)
  normal <- function(y, m, S) {
    z <- y - m
    -0.5 * sum(z * solve(S, z)) - 0.5 * as.vector(determinant(2 * pi * S)$modulus)
  }
  lower <- function(f) structure(f, moves = "lower")
  symmetric <- function(f) structure(f, moves = "symmetric")
  check_stan_case(stan_case("vector[3] m;", "y ~ multi_normal(m, S);", list(m = c(1, 0, -1)),
                            function(p) normal(y, p$m, S), "vector[3] y; matrix[3, 3] S;",
                            list(y = y, S = S)), "multi_normal")
  check_stan_case(stan_case("vector[3] m;", "y ~ multi_normal_prec(m, S);", list(m = c(1, 0, -1)),
                            function(p) normal(y, p$m, solve(S)), "vector[3] y; matrix[3, 3] S;",
                            list(y = y, S = S)), "multi_normal_prec")
  check_stan_case(stan_case("vector[3] m; cholesky_factor_cov[3] L;",
                            "y ~ multi_normal_cholesky(m, L);",
                            list(m = c(1, 0, -1), L = t(chol(S))),
                            lower(function(p) {
                              normal(y, p$m, tcrossprod(p$L * lower.tri(p$L, TRUE)))
                            }), "vector[3] y;",
                            list(y = y)), "multi_normal_cholesky")
  Y <- rbind(y, y + 1)
  check_stan_case(stan_case("vector[3] m;", "y ~ multi_normal(m, S);", list(m = c(1, 0, -1)),
                            function(p) normal(y, p$m, S) + normal(y + 1, p$m, S),
                            "array[2] vector[3] y; matrix[3, 3] S;", list(y = Y, S = S)), "rows")
  check_stan_case(stan_case("real<lower=0> n; vector[3] m;", "y ~ multi_student_t(n, m, S);",
                            list(n = 4, m = c(1, 0, -1)), function(p) {
                              z <- y - p$m
                              lgamma((p$n + 3) / 2) - lgamma(p$n / 2) - 1.5 * log(p$n * pi) -
                                0.5 * log(det(S)) -
                                0.5 * (p$n + 3) * log(1 + sum(z * solve(S, z)) / p$n)
                            }, "vector[3] y; matrix[3, 3] S;", list(y = y, S = S)), "student")
  check_stan_case(stan_case("vector<lower=0>[3] t; vector<lower=0>[3] a;",
                            "t / sum(t) ~ dirichlet(a);",
                            list(t = c(0.2, 0.3, 0.6), a = c(1, 2, 3)), function(p) {
                              lgamma(sum(p$a)) - sum(lgamma(p$a)) +
                                sum((p$a - 1) * log(p$t / sum(p$t)))
                            }), "dirichlet")
  check_stan_case(stan_case("vector[3] t;", "y ~ multinomial(softmax(t));",
                            list(t = c(0.2, 0.3, 0.5)),
                            function(p) lgamma(8) - lgamma(3) - lgamma(6) +
                              sum(c(2, 0, 5) * (p$t - log(sum(exp(p$t))))), "array[3] int y;",
                            list(y = c(2, 0, 5))), "multinomial")
  wishart <- function(W, n, S) {
    k <- nrow(W)
    0.5 * (n - k - 1) * log(det(W)) - 0.5 * sum(diag(solve(S, W))) - 0.5 * n * k * log(2) -
      0.5 * n * log(det(S)) - k * (k - 1) / 4 * log(pi) - sum(lgamma((n + 1 - 1:k) / 2))
  }
  check_stan_case(stan_case("cov_matrix[3] W;", "W ~ wishart(5, S);", list(W = S + diag(3)),
                            symmetric(function(p) wishart(p$W, 5, S)), "matrix[3, 3] S;",
                            list(S = S)), "wishart")
  check_stan_case(stan_case("cov_matrix[3] W;", "W ~ inv_wishart(5, S);", list(W = S + diag(3)),
                            symmetric(function(p) {
                              wishart(solve(p$W), 5, solve(S)) - 4 * log(det(p$W))
                            }), "matrix[3, 3] S;", list(S = S)), "inv_wishart")
  lkj <- function(eta, k) { # log of the normalising constant
    j <- seq_len(k - 1)
    sum((2 * eta - 2 + k - j) * (k - j)) * log(2) +
      sum((k - j) * (2 * lgamma(eta + (k - j - 1) / 2) - lgamma(2 * eta + k - j - 1)))
  }
  R <- cov2cor(S)
  check_stan_case(stan_case("corr_matrix[3] R; real<lower=0> e;", "R ~ lkj_corr(e);",
                            list(R = R, e = 1.7), symmetric(function(p) {
                              (p$e - 1) * log(det(p$R)) - lkj(p$e, 3)
                            })), "lkj_corr")
  check_stan_case(stan_case("cholesky_factor_corr[3] L;", "L ~ lkj_corr_cholesky(1.7);",
                            list(L = t(chol(R))), lower(function(p) {
                              d <- diag(p$L)
                              sum((3 - 2:3 + 2 * 0.7) * log(d[2:3])) - lkj(1.7, 3)
                            })), "lkj_corr_cholesky")
})

test_that("statements on vectors and matrices drop what Stan drops", {
  dropped <- function(declared, model, point) {
    b <- cl_stan(code = sprintf("data { matrix[2, 2] S; array[3] vector[2] y; array[2] int n; }
                                 parameters { %s } model { %s }", declared, model))(
                                   list(S = S, y = y, n = c(2, 5)))
    as.vector(b(point)) - as.vector(b(point, drop = TRUE))
  }
  S <- matrix(c(2, 0.5, 0.5, 1), 2)
  y <- matrix(c(0.3, 1, -1, 2, 0.1, 0.4), 3)
  root <- -3 * log(2 * pi)
  half <- 0.5 * log(det(S))
  m <- list(m = c(0.1, 0.2))
  expect_equal(dropped("vector[2] m;", "y ~ multi_normal(m, S);", m), root - 3 * half)
  expect_equal(dropped("vector[2] m;", "y ~ multi_normal_prec(m, S);", m), root + 3 * half)
  expect_equal(dropped("vector[2] m;", "y[1] ~ multi_normal_cholesky(m, S);", m),
               root / 3 - log(2))
  expect_equal(dropped("array[3] vector[2] v;", "v ~ multi_normal(y[1], S);", list(v = y)),
               root - 3 * half)
  expect_equal(dropped("cov_matrix[2] s;", "y ~ multi_normal(y[1], s);", list(s = S)), root)
  simplex <- list(t = c(0.2, 0.3, 0.5))
  expect_equal(dropped("simplex[3] t;", "t ~ dirichlet([2, 1, 3]');", simplex),
               lgamma(6) - lgamma(3))
  expect_equal(dropped("array[2] simplex[2] t;", "for (i in 1:2) t[i] ~ dirichlet([2, 3]');",
                       list(t = rbind(c(0.2, 0.8), c(0.3, 0.7)))), 2 * (lgamma(5) - lgamma(3)))
  expect_equal(dropped("simplex[2] t;", "n ~ multinomial(t); y[1] ~ multi_normal(y[2], S);",
                       list(t = c(0.3, 0.7))), lchoose(7, 2) +
                 -0.5 * sum((y[1, ] - y[2, ]) * solve(S, y[1, ] - y[2, ])) + root / 3 - half)
  # one corner of the factor: the density of r is proportional to (1 - r^2)^(eta - 1)
  expect_equal(dropped("corr_matrix[2] r;", "r ~ lkj_corr(3);",
                       list(r = matrix(c(1, 0.4, 0.4, 1), 2))),
               -log(integrate(function(r) (1 - r^2)^2, -1, 1)$value))
})

test_that("statements drop the terms of their data, also in loops", {
  y <- c(0.3, 0.5, 0.8)
  k <- c(1, 0, 3)
  terms <- list(
    cauchy = list("y", "m, 2", -log(pi) - log(2)),
    student_t = list("y", "4, m, 2", lgamma(2.5) - lgamma(2) - 0.5 * log(4 * pi) - log(2)),
    double_exponential = list("y", "m, 2", -log(4)), logistic = list("y", "m, 2", -log(2)),
    lognormal = list("y", "m, 2", -log(2 * pi) / 2 - log(2 * y)),
    gamma = list("y", "3, m", 2 * log(y) - log(2)),
    inv_gamma = list("y", "3, m", -4 * log(y) - log(2)),
    weibull = list("y", "3, m", log(3) + 2 * log(y)),
    beta = list("y", "3, m", -log(2) + 2 * log(y)),
    exponential = list("y", "m", 0), normal = list("y", "m, 2", -log(2 * pi) / 2 - log(2)),
    poisson = list("k", "m", -lgamma(k + 1)), poisson_log = list("k", "m", -lgamma(k + 1)),
    binomial = list("k", "4, m", lchoose(4, k)),
    binomial_logit = list("k", "4, m", lchoose(4, k)))
  for (name in names(terms)) {
    row <- terms[[name]]
    for (model in c("%1$s ~ %2$s(%3$s);", "for (n in 1:3) %1$s[n] ~ %2$s(%3$s);")) {
      b <- cl_stan(code = sprintf("data { vector[3] y; array[3] int k; } parameters { real m; }
                                   model { %s }", sprintf(model, row[[1]], name, row[[2]])))(
                                     list(y = y, k = k))
      expect_equal(as.vector(b(m = 0.7)) - as.vector(b(m = 0.7, drop = TRUE)),
                   sum(rep_len(row[[3]], 3)), label = paste(name, model))
    }
  }
})
