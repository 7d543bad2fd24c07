# Constraints of Stan programs: log Jacobian determinants against determinants of differences, and
# the way back.

# Of each declaration the elements on which the value depends freely.
constrained <- list(
  lower = list("vector<lower=1>[3] x;", 3, 1:3),
  upper = list("vector<upper=-1>[3] x;", 3, 1:3),
  both = list("vector<lower=-1, upper=2.5>[3] x;", 3, 1:3),
  none = list("vector<lower=negative_infinity(), upper=positive_infinity()>[2] x;", 2, 1:2),
  bounds = list("vector<lower=[1, 2]', upper=[3, 5]'>[2] x;", 2, 1:2),
  offset = list("vector<offset=1, multiplier=3>[3] x;", 3, 1:3),
  multipliers = list("vector<multiplier=[2, 5]'>[2] x;", 2, 1:2),
  matrix = list("matrix<lower=0>[2, 3] x;", 6, 1:6),
  array = list("array[2, 3] real<lower=0> x;", 6, 1:6),
  ordered = list("ordered[4] x;", 4, 1:4),
  positive_ordered = list("positive_ordered[4] x;", 4, 1:4),
  simplex = list("simplex[4] x;", 3, 1:3),
  simplexes = list("array[2] simplex[3] x;", 4, 1:4),
  corr_factor = list("cholesky_factor_corr[4] x;", 6, c(2, 3, 4, 7, 8, 12)),
  cov_factor = list("cholesky_factor_cov[3] x;", 6, c(1, 2, 3, 5, 6, 9)),
  tall_factor = list("cholesky_factor_cov[3, 2] x;", 5, c(1, 2, 3, 5, 6)),
  corr_matrix = list("corr_matrix[4] x;", 6, c(2, 3, 4, 7, 8, 12)),
  cov_matrix = list("cov_matrix[3] x;", 6, c(1, 2, 3, 5, 6, 9)),
  columns = list("column_stochastic_matrix[3, 2] x;", 4, c(1, 2, 4, 5)),
  rows = list("row_stochastic_matrix[2, 3] x;", 4, 1:4))

test_that("Jacobian determinants and inverses", {
  for (name in names(constrained)) {
    row <- constrained[[name]]
    b <- if (name %in% c("simplexes")) {
      cl_stan(code = sprintf("parameters { %s } model { target += x[1, 1]; }", row[[1]]))
    } else if (name == "array") {
      cl_stan(code = sprintf("parameters { %s } model { target += x[1, 1]; }", row[[1]]))
    } else {
      cl_stan(code = sprintf("parameters { %s } model { target += sum(x); }", row[[1]]))
    }
    b <- b()
    expect_equal(b$dimension, row[[2]], label = name)
    u <- seq(-0.8, 0.9, length.out = row[[2]])
    x <- b$constrain(u)
    expect_equal(b$free(x), u, tolerance = 1e-10, label = name)
    at <- function(u) as.vector(b$constrain(u)$x)[row[[3]]]
    slope <- sapply(seq_along(u), function(i) {
      h <- 1e-3
      move <- function(t) replace(u, i, u[i] + t * h)
      (8 * (at(move(1)) - at(move(-1))) - (at(move(2)) - at(move(-2)))) / (12 * h)
    })
    jacobian <- as.vector(b$unconstrained(u)) - as.vector(b$unconstrained(u, jacobian = FALSE))
    expect_equal(jacobian, as.vector(determinant(matrix(slope, length(u)))$modulus),
                 tolerance = 1e-8, label = name)
    gradient <- attr(b$unconstrained(u), "gradient")
    numeric <- sapply(seq_along(u), function(i) {
      move <- function(t) as.vector(b$unconstrained(replace(u, i, u[i] + t)))
      (move(1e-5) - move(-1e-5)) / 2e-5
    })
    expect_equal(gradient, numeric, tolerance = 1e-7, label = name)
  }
})

test_that("arrays take their numbers row by row, elements by columns", {
  b <- cl_stan(code = "parameters { array[2, 3] real<lower=0> a; array[2, 2] vector<lower=0>[3] v;
    array[2] matrix<lower=0>[2, 2] m; } model { target += a[1, 2]; }")()
  x <- b$constrain(log(1:26))
  for (i in 1:2) for (j in 1:3) expect_equal(x$a[i, j], 3 * (i - 1) + j)
  for (i in 1:2) for (j in 1:2) expect_equal(x$v[i, j, ], 6 + 6 * (i - 1) + 3 * (j - 1) + 1:3)
  for (i in 1:2) expect_equal(x$m[i, , ], matrix(18 + 4 * (i - 1) + 1:4, 2))
  expect_equal(b$free(x), log(1:26))
})

test_that("values are of the declared kind, also those of unit vectors and sums of zero", {
  b <- cl_stan(code = "parameters { unit_vector[3] v; sum_to_zero_vector[4] z;
    sum_to_zero_matrix[2, 3] m; } model { v ~ normal(0, 1); z ~ normal(0, 2);
    target += sum(square(m)); }")()
  u <- seq(-1, 1.4, length.out = b$dimension)
  x <- b$constrain(u)
  expect_equal(sum(x$v^2), 1)
  expect_equal(sum(x$z), 0)
  expect_equal(c(rowSums(x$m), colSums(x$m)), numeric(5))
  expect_equal(b$free(x)[-(1:3)], u[-(1:3)])
  expect_equal(b$constrain(b$free(x)), x)
  jacobian <- as.vector(b$unconstrained(u)) - as.vector(b$unconstrained(u, jacobian = FALSE))
  expect_equal(jacobian, -sum(u[1:3]^2) / 2)
})

test_that("bounds may depend on parameters", {
  b <- cl_stan(code = "parameters { real<lower=0, upper=1> a; real<lower=0, upper=1 - a> b;
    vector<lower=a>[2] c; } model { a ~ beta(2, 2); c ~ normal(b, 1); }")()
  u <- b$free(list(a = 0.3, b = 0.2, c = c(0.5, 2)))
  expect_equal(b$constrain(u), list(a = 0.3, b = 0.2, c = c(0.5, 2)))
  want <- dbeta(0.3, 2, 2, log = TRUE) + sum(dnorm(c(0.5, 2), 0.2, 1, log = TRUE))
  expect_equal(as.vector(b(a = 0.3, b = 0.2, c = c(0.5, 2))), want)
  expect_equal(as.vector(b$unconstrained(u)),
               want + log(0.3 * 0.7) + log(0.2 * 0.5 / 0.7) + log(0.2) + log(1.7))
})
