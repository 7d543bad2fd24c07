# Systems of equations in Stan programs, against closed forms and uniroot().

solve_program <- function(functions, parameters, model, quantities = "") {
  cl_stan(code = sprintf("functions { %s } parameters { %s } model { %s }
                         generated quantities { %s }", functions, parameters, model, quantities))
}

test_that("each solver has the root and its derivatives", {
  old <- "vector f(vector y, vector p, data array[] real r, data array[] int k) {
            return [y[1] - r[1] * p[1], y[1] * y[2] - k[1] * p[2]]'; }"
  new <- "vector f(vector y, vector p, real r, array[] int k) {
            return [y[1] - r * p[1], y[1] * y[2] - k[1] * p[2]]'; }"
  calls <- c("algebra_solver(f, [1, 1]', p, {2.0}, {3})",
             "algebra_solver(f, [1, 1]', p, {2.0}, {3}, 1e-8, 1e-9, 100)",
             "algebra_solver_newton(f, [1, 1]', p, {2.0}, {3})",
             "algebra_solver_newton(f, [1, 1]', p, {2.0}, {3}, 1e-8, 1e-9, 100)",
             "solve_newton(f, [1, 1]', p, 2.0, {3})", "solve_powell(f, [1, 1]', p, 2.0, {3})",
             "solve_newton_tol(f, [1, 1]', 1e-8, 1e-9, 100, p, 2.0, {3})",
             "solve_powell_tol(f, [1, 1]', 1e-8, 1e-9, 100, p, 2.0, {3})")
  for (call in calls) {
    functions <- if (startsWith(call, "a")) old else new
    check_stan_case(stan_case("vector[2] p;", sprintf("target += dot_product(%s, [2, -1]);", call),
                              list(p = c(1.3, -0.7)), function(p) {
                                4 * p$p[1] - 3 * p$p[2] / (2 * p$p[1])
                              }, functions = functions), call, 1e-9)
  }
})

test_that("roots of one, three and six equations, on each engine", {
  functions <- "
    vector one(vector x, real a) { return [x[1] * exp(x[1]) - a]'; }
    vector three(vector x, real a, vector b) {
      return [a * x[1]^3 + x[2] - b[1], exp(x[2] / 3) + x[3] - b[2], x[1] + x[2] * x[3] - 0.3]';
    }
    vector six(vector x, vector b) {
      vector[6] r;
      for (i in 1:6) r[i] = x[i] + 0.1 * x[i % 6 + 1]^2 - 0.1 * b[1] * i - b[2];
      return r;
    }"
  model <- "vector[6] w = [1, -2, 3, 0.5, 1, 2]';
    target += solve_newton(one, [0.5]', a)[1];
    target += dot_product(w[1:3], solve_powell(three, [1, 1, 1]', a, b));
    target += %s;"
  last <- "dot_product(w, solve_newton(six, rep_vector(0, 6), b))"
  b <- solve_program(functions, "real<lower=0> a; vector[2] b;", sprintf(model, last),
                     "vector[3] x = solve_newton(three, [1, 1, 1]', a, b);
                      real w = solve_newton(one, [0.5]', a)[1];
                      vector[6] s = solve_newton(six, rep_vector(0, 6), b);")()
  u <- c(log(0.7), 2, 3)
  inside <- stan_output_function(environment(b)$state)(u)
  root <- uniroot(function(x) x * exp(x) - 0.7, c(0, 1), tol = 1e-14)$root
  expect_equal(inside$w, root, tolerance = 1e-12)
  x <- inside$x
  expect_close(c(0.7 * x[1]^3 + x[2], exp(x[2] / 3) + x[3], x[1] + x[2] * x[3]), c(2, 3, 0.3),
               1e-14)
  expect_close(inside$s + 0.1 * inside$s[c(2:6, 1)]^2, 0.2 * 1:6 + 3, 1e-14)
  w <- c(1, -2, 3, 0.5, 1, 2)
  check <- function(f, want) {
    found <- f$unconstrained(u, jacobian = FALSE)
    expect_close(as.vector(found), want, 1e-12)
    expect_close(attr(found, "gradient"),
                 slopes_of(function(u) f$unconstrained(u, jacobian = FALSE), u), 1e-10)
  }
  on_host(check(b, root + sum(w[1:3] * x) + sum(w * inside$s)))
  each_engine(check(solve_program(functions, "real<lower=0> a; vector[2] b;",
                                  sprintf(model, "0"))(), root + sum(w[1:3] * x)))
})

test_that("roots are found from afar", {
  functions <- "vector valley(vector x, real a) { return [10 * (x[2] - x[1]^2), a - x[1]]'; }
                vector far(vector x, real a) { return [atan(x[1]) - a]'; }"
  b <- solve_program(functions, "real a;",
                     "target += sum(solve_powell(valley, [-1.2, 1]', a));
                      target += solve_newton(far, [5]', a)[1];")()
  found <- b(a = 0.8)
  expect_equal(as.vector(found), 0.8 + 0.64 + tan(0.8), tolerance = 1e-12)
  expect_equal(attr(found, "gradient")$a, 1 + 1.6 + 1 / cos(0.8)^2, tolerance = 1e-10)
})

test_that("equations without a root: the density is NaN, a quantity an error", {
  functions <- "vector none(vector x, real a) { return [x[1]^2 + a]'; }
                vector few(vector x, real a) { return [x[1] + a]'; }"
  b <- solve_program(functions, "real a;", "target += solve_newton(none, [1]', a)[1];",
                     "real g = solve_powell(none, [1]', a)[1];")()
  expect_equal(as.vector(b(a = -4)), 2)
  found <- b(a = 1)
  expect_true(is.nan(found))
  expect_error(stan_output_function(environment(b)$state)(1), "are not solved")
  fixed <- cl_stan(code = sprintf("functions { %s } transformed data {
    real x = solve_newton(none, [1]', 2.0)[1];
  }", functions))
  expect_fault(fixed(), "stan", line = 3)
  wrong <- solve_program(functions, "real a;", "target += solve_newton(few, [1, 2]', a)[1];")()
  expect_fault(wrong(a = 1), "stan")
})
