# integrate_1d() in Stan programs, against closed forms.

# body of f(x, xc, th), limits, closed form of s and t
integrals <- list(
  normal = list("return exp(normal_lpdf(x | th[1], th[2]));", "negative_infinity()",
                "positive_infinity()", function(s, t) 1 + 0 * s),
  half_normal = list("return exp(-0.5 * square(x / th[2]));", "0", "positive_infinity()",
                     function(s, t) t * sqrt(pi / 2)),
  gamma = list("return pow(x, th[1] - 1) * exp(-x * th[2]);", "0", "positive_infinity()",
               function(s, t) gamma(s) / t^s),
  # x^4 overflows where exp(-x) is 0
  moment = list("return x^4 * pow(x, th[1] - 1) * exp(-x * th[2]);", "0", "positive_infinity()",
                function(s, t) gamma(s + 4) / t^(s + 4)),
  # poles at both ends, which x alone does not resolve
  beta = list("return pow(xc < 0 ? -xc : x, 0.1 * th[1] - 1) *
                 pow(xc < 0 ? 1 - x : xc, 0.1 * th[2] - 1);", "0", "1",
              function(s, t) beta(s / 10, t / 10)),
  shifted = list("return pow(xc < 0 ? -xc : x - 2, 0.1 * th[1] - 1) *
                    pow(xc < 0 ? 3 - x : xc, 0.1 * th[2] - 1);", "2", "3",
                 function(s, t) beta(s / 10, t / 10)),
  limits = list("return exp(-x * th[1]);", "s", "t",
                function(s, t) (exp(-s * s) - exp(-s * t)) / s),
  above = list("return exp(-x * th[1]);", "t", "positive_infinity()",
               function(s, t) exp(-s * t) / s),
  below = list("return exp(x * th[1]);", "negative_infinity()", "t", function(s, t) exp(s * t) / s),
  corner = list("return exp(-abs(x) * th[1]);", "-2", "3",
                function(s, t) (2 - exp(-2 * s) - exp(-3 * s)) / s),
  # by the smaller spacing
  narrow = list("return exp(normal_lpdf(x | th[1], 0.01 * th[2]));", "0", "1",
                function(s, t) pnorm(1, s, 0.01 * t) - pnorm(0, s, 0.01 * t)),
  data = list("return r[1] * k[1] * x * th[1] * th[2];", "0", "1", function(s, t) 0.5 * s * t),
  empty = list("return x * th[1];", "1", "1", function(s, t) 0 * s))

integrate_program <- function(body, a, b, tolerance = "") {
  call <- sprintf("integrate_1d(f, %s, %s, {s, t}, {0.5}, {2}%s)", a, b, tolerance)
  sprintf("functions { real f(real x, real xc, array[] real th, data array[] real r,
                             data array[] int k) { %s } }
          parameters { real<lower=0> s; real<lower=0> t; } model { target += s * t + %s; }
          generated quantities { real g = %s; }", body, call, call)
}

test_that("integrals and their derivatives", {
  check <- function(name) {
    row <- integrals[[name]]
    b <- cl_stan(code = integrate_program(row[[1]], row[[2]], row[[3]]))()
    found <- b(s = 0.7, t = 1.9)
    expect_close(as.vector(found), 1.33 + row[[4]](0.7, 1.9), 1e-12)
    slopes <- slopes_of(function(p) p[1] * p[2] + row[[4]](p[1], p[2]), c(0.7, 1.9))
    expect_close(unlist(attr(found, "gradient"), use.names = FALSE), slopes, 1e-10)
    b
  }
  for (name in names(integrals)) {
    b <- on_host(check(name))
    inside <- stan_output_function(environment(b)$state)(log(c(0.7, 1.9)))
    expect_close(inside$g, integrals[[name]][[4]](0.7, 1.9), 1e-13)
  }
  each_engine(for (name in c("gamma", "limits", "narrow")) check(name))
})

test_that("integrals that are not found: the density is NaN, a quantity an error", {
  b <- cl_stan(code = integrate_program("return th[1] / x;", "0", "t"))()
  expect_true(is.nan(b(s = 1, t = 1)))
  expect_error(stan_output_function(environment(b)$state)(c(0, 0)), "integral is not found")
  # a tolerance that rounding error does not reach, and one that it does
  wave <- "return sin(100 * x) + th[1];"
  for (tolerance in c(1e-20, 1e-8)) {
    b <- cl_stan(code = integrate_program(wave, "0", "1", sprintf(", %g", tolerance)))()
    expect_identical(is.nan(b(s = 1, t = 1)), tolerance < 1e-15)
  }
  b <- cl_stan(code = integrate_program("return th[1];", "2", "1"))()
  expect_fault(b(s = 1, t = 1), "stan")
})
