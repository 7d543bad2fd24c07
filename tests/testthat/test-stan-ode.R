# Differential equations in Stan programs, against exact solutions.

# y1' = -k y1, y2' = k y1 - 1000 (y2 - y1): y2 soon follows y1, at a distance
fast <- "
  vector fast(real t, vector y, real k) {
    return [-k * y[1], k * y[1] - 1000 * (y[2] - y[1])]';
  }
  array[] real fast_old(real t, array[] real y, array[] real k, data array[] real r,
                        data array[] int i) {
    return {-k[1] * y[1], k[1] * y[1] - r[1] * (y[2] - y[1])};
  }"
exact <- function(t, k) {
  ratio <- (k + 1000) / (1000 - k)
  cbind(exp(-k * t), ratio * exp(-k * t) + (2 - ratio) * exp(-1000 * t))
}

test_that("each solver has the solution and its derivative", {
  times <- c(0.5, 1, 4)
  control <- "1e-8, 1e-8, 100000, "
  long <- "1e-8, [1e-8, 1e-8]', 1e-8, [1e-8, 1e-8]', 1e-8, 1e-8, 100000, 50, 1, %d, 2, "
  calls <- c(
    sprintf("ode_%s(fast, [1, 2]', 0, ts, %sk)", c("bdf", "bdf_tol", "adjoint_tol_ctl"),
            c("", control, sprintf(long, 2L))),
    "to_vectors(integrate_ode_bdf(fast_old, {1.0, 2.0}, 0, ts, {2 * k / 2}, {1000.0}, {0}))",
    "to_vectors(integrate_ode_bdf(fast_old, {1.0, 2.0}, 0, ts, {k}, {1000.0}, {0}, 1e-8, 1e-8,
                                  100000))")
  functions <- paste(fast, "array[] vector to_vectors(array[,] real y) {
    array[size(y)] vector[2] v;
    for (n in 1:size(y)) v[n] = to_vector(y[n]);
    return v;
  }")
  w <- matrix(c(1, -2, 0.5, 3, 0.7, -1), 3)
  for (call in calls) {
    model <- sprintf("array[3] vector[2] y = %s;
                      for (n in 1:3) target += dot_product(w[n], y[n]);", call)
    check_stan_case(stan_case("real<lower=0> k;", model, list(k = 0.8),
                              function(p) sum(w * exact(times, p$k)),
                              "matrix[3, 2] w; array[3] real ts;", list(w = w, ts = times),
                              functions), call, 1e-6, 1e-7)
  }
  slow <- "vector slow(real t, vector y, real k) { return [-k * y[1] + cos(t)]'; }"
  solution <- function(t, k) {
    (k * cos(t) + sin(t)) / (k^2 + 1) + (2 - k / (k^2 + 1)) * exp(-k * t)
  }
  long <- sub("\\[1e-8, 1e-8\\]", "[1e-8]", sub("\\[1e-8, 1e-8\\]", "[1e-8]", sprintf(long, 1L)))
  for (call in sprintf("ode_%s(slow, [2]', 0, ts, %sk)",
                       c("adams", "adams_tol", "ckrk", "ckrk_tol", "rk45", "rk45_tol", "bdf",
                         "adjoint_tol_ctl"),
                       c("", control, "", control, "", control, "", long))) {
    model <- sprintf("array[3] vector[1] y = %s; target += y[1, 1] - 2 * y[2, 1] + y[3, 1];", call)
    check_stan_case(stan_case("real<lower=0> k;", model, list(k = 0.8), function(p) {
      sum(c(1, -2, 1) * solution(times, p$k))
    }, "array[3] real ts;", list(ts = times), slow), call, 1e-6, 1e-7)
  }
})

test_that("initial states and several arguments may be parameters", {
  functions <- "vector f(real t, vector y, matrix A, vector b) { return A * y + b; }"
  A <- matrix(c(-300, 299, 299, -300), 2)
  at <- function(y0, b) { # by eigenvalues -1 and -599
    e <- eigen(A)
    z <- solve(e$vectors, y0)
    c <- solve(e$vectors, b)
    l <- e$values
    as.vector(e$vectors %*% (exp(l) * z + (exp(l) - 1) / l * c))
  }
  model <- "target += dot_product([2, -1], ode_bdf(f, y0, 0, {1.0}, A, 2 * b)[1]);"
  check_stan_case(stan_case("vector[2] y0; vector[2] b;", model,
                            list(y0 = c(1, 3), b = c(0.3, -0.7)),
                            function(p) sum(c(2, -1) * at(p$y0, 2 * p$b)), "matrix[2, 2] A;",
                            list(A = A), functions), "linear", 1e-6, 1e-7)
})

test_that("one time that is far away is reached", {
  functions <- "functions {
    vector wave(real t, vector y, real w) { return [y[2], -square(w) * y[1]]'; } }"
  b <- cl_stan(code = paste(functions, "parameters { real w; } model {
    target += ode_rk45(wave, [1, 0]', 0, {60.0}, w)[1, 1]; }"))()
  found <- b(w = 1.1)
  expect_equal(as.vector(found), cos(66), tolerance = 1e-5)
  expect_equal(attr(found, "gradient")$w, -60 * sin(66), tolerance = 1e-5)
})

test_that("solutions that are not reached: the density is NaN, a quantity an error", {
  code <- "functions { vector grow(real t, vector y, real k) { return k * square(y); } }
           parameters { real k; }
           model { target += ode_bdf(grow, [1]', 0, {1.0}, k)[1, 1]; }
           generated quantities { real g = ode_bdf(grow, [1]', 0, {1.0}, k)[1, 1]; }"
  b <- cl_stan(code = code)()
  expect_equal(as.vector(b(k = 0.5)), 2, tolerance = 1e-7)
  expect_true(is.nan(b(k = 2)))
  expect_error(stan_output_function(environment(b)$state)(2), "steps")
})
