# Densities of generalised linear models in Stan programs, against R's densities.

set.seed(5)
X <- matrix(rnorm(12), 6)
off <- c(0.1, -0.3, 0.2, 0, 0.4, -0.1)
classes <- function(e, y) e[cbind(seq_along(y), y)] - log(rowSums(exp(e)))

# name, statement, parameters, point, density of y and the linear predictor
glms <- list(
  normal_id = list("y ~ normal_id_glm(X, a, b, s);", "real a; vector[2] b; real<lower=0> s;",
                   list(a = 0.3, b = c(-0.5, 0.4), s = 1.2),
                   function(y, e, p) dnorm(y, e, p$s, log = TRUE)),
  bernoulli_logit = list("k ~ bernoulli_logit_glm(X, a, b);", "real a; vector[2] b;",
                         list(a = 0.3, b = c(-0.5, 0.4)),
                         function(y, e, p) dbinom(y %% 2, 1, plogis(e), log = TRUE)),
  binomial_logit = list("k ~ binomial_logit_glm(5, X, a, b);", "real a; vector[2] b;",
                        list(a = 0.3, b = c(-0.5, 0.4)),
                        function(y, e, p) dbinom(y, 5, plogis(e), log = TRUE)),
  poisson_log = list("k ~ poisson_log_glm(X, a, b);", "real a; vector[2] b;",
                     list(a = 0.3, b = c(-0.5, 0.4)),
                     function(y, e, p) dpois(y, exp(e), log = TRUE)),
  neg_binomial_2_log = list("k ~ neg_binomial_2_log_glm(X, a, b, s);",
                            "real a; vector[2] b; real<lower=0> s;",
                            list(a = 0.3, b = c(-0.5, 0.4), s = 1.2),
                            function(y, e, p) dnbinom(y, p$s, mu = exp(e), log = TRUE)),
  ordered_logistic = list("k ~ ordered_logistic_glm(X, b, c);", "vector[2] b; ordered[2] c;",
                          list(b = c(-0.5, 0.4), c = c(-0.3, 0.8)), function(y, e, p) {
                            f <- function(c) plogis(c - e)
                            log(cbind(f(p$c[1]), f(p$c[2]) - f(p$c[1]), 1 - f(p$c[2]))[
                              cbind(seq_along(y), y)])
                          }),
  categorical_logit = list("k ~ categorical_logit_glm(X, a, b);", "vector[3] a; matrix[2, 3] b;",
                           list(a = c(0, 0.3, -0.2), b = matrix(c(0.1, 0, -0.5, 0.4, 0.2, 0.3), 2)),
                           function(y, e, p) classes(e, y)))

data_of <- function(k) {
  list(y = c(0.4, -1, 2, 0.3, 0, 1.1), k = k, X = X, off = off)
}
declared <- "vector[6] y; array[6] int k; matrix[6, 2] X; vector[6] off;"

predictor <- function(p, x = X) {
  e <- x %*% p$b
  if (ncol(e) > 1) sweep(e, 2, p$a, "+") else as.vector(e) + if (is.null(p$a)) 0 else p$a
}

test_that("densities of generalised linear models", {
  for (name in names(glms)) {
    row <- glms[[name]]
    k <- if (name == "bernoulli_logit") c(0, 1, 1, 0, 1, 0) else c(1, 3, 2, 2, 1, 3)
    y <- if (name == "normal_id") data_of(k)$y else k
    check_stan_case(stan_case(row[[2]], row[[1]], row[[3]],
                              function(p) sum(row[[4]](y, predictor(p), p)), declared,
                              data_of(k)), name)
    # one observation of all rows, and all observations of one row
    once <- sub("X", "X[2]", sub("(y|k) ~", "\\1[3] ~", row[[1]]))
    check_stan_case(stan_case(row[[2]], once, row[[3]], function(p) {
      sum(row[[4]](y[3], predictor(p, X[2, , drop = FALSE]), p))
    }, declared, data_of(k)), paste(name, "of a row"))
    shared <- sub("X", "X[2]", row[[1]])
    check_stan_case(stan_case(row[[2]], shared, row[[3]], function(p) {
      sum(row[[4]](y, predictor(p, X[rep(2, 6), ]), p))
    }, declared, data_of(k)), paste(name, "of a shared row"))
    # in generated quantities
    if (name == "normal_id") next
    code <- sprintf("data { %s } parameters { %s } model { } generated quantities { real g =
                    %s_glm_lpmf(k | %s; }", declared, row[[2]], name,
                    sub(".*_glm\\(", "", sub(";", "", row[[1]])))
    b <- cl_stan(code = code)(data_of(k))
    inside <- stan_output_function(environment(b)$state)
    expect_equal(inside(b$free(row[[3]]))$g, sum(row[[4]](y, predictor(row[[3]]), row[[3]])),
                 tolerance = 1e-10, label = name)
  }
})

test_that("intercepts and scales may be vectors, designs parameters", {
  k <- c(1, 3, 2, 2, 1, 3)
  check_stan_case(stan_case("real a; vector[2] b; vector<lower=0>[6] s;",
                            "y ~ normal_id_glm(X, a + off, b, s);",
                            list(a = 0.3, b = c(-0.5, 0.4), s = 1 + 1:6 / 5), function(p) {
                              sum(dnorm(data_of(k)$y, p$a + off + X %*% p$b, p$s, log = TRUE))
                            }, declared, data_of(k)), "vectors")
  check_stan_case(stan_case("matrix[6, 2] Z; vector[2] b;", "k ~ poisson_log_glm(Z, off, b);",
                            list(Z = X, b = c(-0.5, 0.4)), function(p) {
                              sum(dpois(k, exp(off + p$Z %*% p$b), log = TRUE))
                            }, declared, data_of(k)), "design")
  # far out, where exp() of a linear predictor is not finite
  b <- cl_stan(code = "data { array[2] int k; matrix[2, 1] X; } parameters { vector[3] a;
               matrix[1, 3] b; } model { k ~ categorical_logit_glm(X, a, b); }")(
                 list(k = c(1, 2), X = matrix(c(1, -1), 2)))
  expect_equal(as.vector(b(a = numeric(3), b = matrix(c(900, 0, -900), 1))), -900)
})

test_that("statements drop what Stan drops", {
  k <- c(1, 3, 2, 2, 1, 3)
  constant <- list(normal_id = -6 * log(sqrt(2 * pi)), bernoulli_logit = 0,
                   binomial_logit = sum(lchoose(5, k)), poisson_log = -sum(lgamma(k + 1)),
                   neg_binomial_2_log = -sum(lgamma(k + 1)))
  for (name in names(constant)) {
    row <- glms[[name]]
    code <- sprintf("data { %s } parameters { %s } model { %s }", declared, row[[2]], row[[1]])
    b <- cl_stan(code = code)(data_of(if (name == "bernoulli_logit") k %% 2 else k))
    expect_equal(as.vector(b(row[[3]])) - as.vector(b(row[[3]], drop = TRUE)), constant[[name]],
                 tolerance = 1e-10, label = name)
  }
})

test_that("categories out of range stop", {
  model <- cl_stan(code = "data { array[2] int k; matrix[2, 1] X; } parameters { vector[2] a;
                   matrix[1, 2] b; } model { k ~ categorical_logit_glm(X, a, b); }")
  b <- model(list(k = c(1, 3), X = matrix(1, 2, 1)))
  expect_fault(b(a = c(0, 0), b = matrix(0, 1, 2)), "stan", line = 2)
})

test_that("a device reads a design once", {
  require_device()
  gpu <- device_table()$type[test_device() + 1L] == "gpu" ||
    identical(Sys.getenv("STATCL_GPU_KERNELS"), "1")
  if (!gpu) skip("devices other than GPUs read it twice")
  old <- Sys.getenv("STATCL_ROW_PASS", NA)
  on.exit(if (is.na(old)) Sys.unsetenv("STATCL_ROW_PASS") else Sys.setenv(STATCL_ROW_PASS = old))
  Sys.setenv(STATCL_ROW_PASS = "1")
  on_device(for (name in setdiff(names(glms), c("categorical_logit", "ordered_logistic"))) {
    row <- glms[[name]]
    code <- sprintf("data { %s } parameters { %s } model { %s }", declared, row[[2]], row[[1]])
    b <- cl_stan(code = code)(data_of(c(1, 1, 1, 1, 1, 1)))
    do.call(b, row[[3]])
    shown <- capture.output(print(environment(b)$state$namedFALSE))
    expect_match(shown, "kernels?, 0 calls", all = FALSE, label = name)
  })
})

test_that("a design of one row serves all observations", {
  model <- cl_stan(code = "
    data { array[4] int k; row_vector[2] x; }
    transformed data { real known = bernoulli_logit_glm_lpmf(k | x, 0.3, [-0.5, 0.4]'); }
    parameters { real a; vector[2] b; }
    model { target += bernoulli_logit_glm_lpmf(k | x, a, b) + known; }")
  k <- c(1L, 0L, 1L, 1L)
  x <- c(0.5, -2)
  each_engine({
    value <- model(list(k = k, x = x))(a = 0.3, b = c(-0.5, 0.4))
    p <- plogis(0.3 + sum(x * c(-0.5, 0.4)))
    expect_equal(as.numeric(value), 2 * sum(dbinom(k, 1, p, log = TRUE)),
                 tolerance = 1e-12)
    expect_equal(unlist(attr(value, "gradient"), use.names = FALSE), sum(k - p) * c(1, x),
                 tolerance = 1e-12)
  })
})
