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

test_that("differential-algebraic equations", {
  # of two algebraic equations and two derivatives, in an order with zeros on the diagonal
  functions <- "vector chain(real t, vector y, vector s, real k, vector c) {
    return [y[2] - c[1] * square(y[1]), y[4] - cos(t) * y[1], s[1] + k * y[1], s[3] - y[2]]'; }"
  times <- c(0.5, 1, 3)
  exact <- function(p) {
    y <- exp(-p$k * times) * p$y0
    cbind(y, 2 * y^2, (p$y0^2 - y^2) / p$k, cos(times) * y)
  }
  w <- matrix(c(1, -2, 0.5, 3, 0.7, -1, 0.4, 1.1, -0.6, 2, 0.3, -0.2), 3)
  for (call in c("dae(chain", "dae_tol(chain")) {
    control <- if (grepl("tol", call)) "1e-9, 1e-9, 10000, " else ""
    model <- sprintf("array[3] vector[4] y = %s, [y0, 2 * y0^2, 0, y0]',
      [-k * y0, -4 * k * y0^2, 2 * y0^2, -k * y0]', 0, ts, %sk, [2]');
      for (n in 1:3) target += dot_product(w[n], y[n]);", call, control)
    check_stan_case(stan_case("real<lower=0> k; real y0;", model, list(k = 0.8, y0 = 1.3),
                              function(p) sum(w * exact(p)),
                              "matrix[3, 4] w; array[3] real ts;", list(w = w, ts = times),
                              functions), call, 1e-5, 1e-6)
  }
  # an equation that has no form y' = f(y): s^3 + s + k y = 0, against many short steps in R
  code <- "functions { vector implicit(real t, vector y, vector s, real k) {
      return [s[1]^3 + s[1] + k * y[1]]'; } }
    parameters { real k; }
    model { target += dae(implicit, [2]', [-1]', 0, {1.5}, k)[1, 1]; }
    generated quantities { real g = dae(implicit, [2]', [-1]', 0, {1.5}, k)[1, 1];
      vector[2] wrong; if (k > 2) wrong = dae(implicit, [2, 1]', [-1, 0]', 0, {1.5}, k)[1]; }"
  b <- cl_stan(code = code)()
  reference <- function(k) {
    f <- function(y) uniroot(function(s) s^3 + s + k * y, c(-9, 9), tol = 1e-14)$root
    h <- 1.5 / 200
    y <- 2
    for (i in 1:200) {
      k1 <- f(y)
      k2 <- f(y + h / 2 * k1)
      k3 <- f(y + h / 2 * k2)
      y <- y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3))
    }
    y
  }
  found <- b(k = 1)
  expect_equal(as.vector(found), reference(1), tolerance = 1e-7)
  expect_equal(attr(found, "gradient")$k, (reference(1.001) - reference(0.999)) / 0.002,
               tolerance = 1e-5)
  quantities <- stan_output_function(environment(b)$state)
  expect_equal(quantities(1)$g, reference(1), tolerance = 1e-7)
  expect_error(quantities(3), "sizes differ")
})

test_that("a chemical reaction as algebraic and as differential equations", {
  stiff <- "vector rates(real t, vector y, real k) { real a = k * y[1] - 1e4 * y[2] * y[3];
      real b = 3e7 * square(y[2]); return [-a, a - b, b]'; }
    vector conserved(real t, vector y, vector s, real k) { vector[3] r = s - rates(t, y, k);
      r[3] = sum(y) - 1; return r; }"
  point <- list(k = 0.04)
  found <- lapply(c("ode_bdf_tol(rates, [1, 0, 0]', 0, {0.4, 40}, 1e-9, 1e-12, 100000, k)",
                    "dae(conserved, [1, 0, 0]', [-k, k, 0]', 0, {0.4, 40}, k)"), function(call) {
    code <- sprintf("functions { %s } parameters { real<lower=0> k; } model {
      array[2] vector[3] y = %s; target += y[1, 1] + 2e4 * y[1, 2] + 3 * y[2, 3]; }", stiff, call)
    do.call(cl_stan(code = code)(), point)
  })
  expect_equal(found[[2]], found[[1]], tolerance = 1e-6)
})
