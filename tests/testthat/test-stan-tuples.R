# Tuples of Stan programs, against R functions of the same density.

test_that("tuples as data, variables, arguments and results", {
  values <- list(n = 2, t = list(list(1, c(1, 2)), list(2, c(0.5, 1))), q = list(1, list(2, 3)),
                 w = list(list(list(1, 2), list(3, 4)), list(list(5, 6), list(7, 8))))
  data <- "int n; array[n] tuple(int<lower=1>, vector<upper=2>[n]) t;
    tuple(real, tuple(int, real)) q; array[2, 2] tuple(int, real) w; }
    transformed data { tuple(int, array[2] real) k = (3, {1, 2});
    array[2] tuple(int, vector[2]) z; z[1].1 = 4; z[1].2[2] = 5; z[2] = (1, [7, 8]');
    z[1].2[1] = t[1].1;"
  functions <- "
    tuple(real, vector) f(real x, vector v) { return (x^2, v * x); }
    real g(array[] tuple(real, vector) a) { real s = 0; for (t in a) s += t.1 * sum(t.2);
      return s; }"
  check <- function(model, density, point = list(a = 0.5, b = c(0.1, 0.2))) {
    check_stan_case(stan_case("real a; vector[2] b;", model, point, density, data, values,
                              functions), model)
  }
  check("target += q.1 * a + q.2.2 * b[1] + t[2].2[1] * b[2] + t[1].1 + w[2, 1].2 * a;",
        function(p) 7 * p$a + 3 * p$b[1] + 0.5 * p$b[2] + 1)
  check("target += a * (z[1].2[1] + z[1].2[2] + z[2].2[1] + z[1].1) + k.2[2] * b[k.1 - 1];",
        function(p) 17 * p$a + 2 * p$b[2])
  check("real c; vector[2] v; (c, v) = f(a, b); (v[1], c) = (c, a); target += sum(v) + g(t) * c;",
        function(p) p$a^2 + p$a * p$b[2] + 6 * p$a)
  check("real c; vector[2] v; int i; (i, (c, v)) = (2, (a, b)); target += i * c * v[2];",
        function(p) 2 * p$a * p$b[2])
  check("tuple(real, tuple(vector[2], real)) u = (a, (b, 1)); u.2.1[2] = 3 * a; u.1 += 1;
    array[2] tuple(real, vector[2]) r; r[1] = (a, b); r[2].2 = 2 * b; r[2].2[1] = a; r[2].1 = 4;
    target += u.1 * sum(u.2.1) + g(r) + g(reverse(r)) + g(r[{2}]) + g(rep_array((a, b), 3));",
        function(p) with(p, (a + 1) * (b[1] + 3 * a) + 2 * a * sum(b) + 12 * (2 * b[2] + a) +
                           3 * a * sum(b)))
  check("target += {{(1, a), (2, b[1])}, {(3, b[2]), (4, 1)}}[2, 1].2 * {(a, 1), (1, a)}[1].1;",
        function(p) p$a * p$b[2])
  # branches that depend on parameters
  for (a in c(-0.5, 0.5)) {
    check("tuple(real, vector[2]) u = (a, b); real c = 1; if (a > 0) { (c, u.2[1]) = (5 * a, a); }
      else u.1 = 3; target += u.1 * u.2[1] + c; tuple(real, real) h = a > 0 ? (a, 1) : (1, 2 * a);
      target += h.1 * h.2;",
          function(p) if (p$a > 0) p$a^2 + 6 * p$a else 3 * p$b[1] + 1 + 2 * p$a,
          list(a = a, b = c(0.1, 0.2)))
  }
  # files of JSON have tuples as objects
  file <- tempfile(fileext = ".json")
  on.exit(unlink(file))
  writeLines('{"x": {"2": [1, 2.5], "1": 3}, "y": [{"1": 1, "2": {"1": 2, "2": [3]}}]}', file)
  m <- cl_stan(code = "data { tuple(int, vector[2]) x; array[1] tuple(real, tuple(real,
    array[1] int)) y; } parameters { real a; } model {
    target += a * (x.1 + x.2[2] + 10 * y[1].2.1 + 100 * y[1].2.2[1]); }")
  expect_equal(as.vector(m(file)(a = 1)), 325.5)
})

test_that("tuples are outputs and parameters", {
  b <- cl_stan(code = "data { int n; }
    parameters { tuple(real<lower=0>, simplex[3]) t; array[n, 2] tuple(real, vector[2]) q;
      real<upper=t.1> z; }
    transformed parameters { tuple(real<lower=-3>, vector[2]) u = (-z, t.2[:2]); }
    model { target += -t.1 + log(t.2[1]) - z^2 + u.1; for (i in 1:n) for (j in 1:2)
      target += -j * q[i, j].1^2 - dot_self(q[i, j].2); }
    generated quantities { array[2] tuple(int, tuple(real, vector[2])) o; for (i in 1:2) {
      o[i] = (i, (t.1, [z, i]')); o[i].2.2[2] *= 10; } }")(list(n = 2))
  q <- lapply(c(1, 3, 2, 4), function(i) list(i / 10, c(i, 1)))
  dim(q) <- c(2, 2)
  point <- list(t = list(2, c(0.2, 0.3, 0.5)), q = q, z = 1)
  value <- do.call(b, point)
  expect_equal(as.vector(value),
               -2 + log(0.2) - 1 - 1 - sum(c(1, 1, 2, 2) * (c(1, 3, 2, 4) / 10)^2) - 34)
  expect_equal(attr(value, "gradient")[["q[2,1].2"]], c(-6, -2))
  expect_equal(attr(value, "gradient")[c("t.1", "z")], list(t.1 = -1, z = -3))
  u <- b$free(point)
  expect_equal(as.vector(b$unconstrained(u, jacobian = FALSE)), as.vector(value))
  expect_equal(b$constrain(u)[["t.2"]], c(0.2, 0.3, 0.5))
  expect_identical(as.vector(b(t = point$t, q = q, z = 4)), -Inf) # u.1 is below its bound
  draws <- as.matrix(cl_sample(b, chains = 1, warmup = 20, iter = 3, seed = 1, init = point))
  expect_identical(colnames(draws)[c(1:6, 17, 18, 20, 21:25)],
                   c("t.1", "t.2[1]", "t.2[2]", "t.2[3]", "q[1,1].1", "q[1,1].2[1]", "z", "u.1",
                     "u.2[2]", "o[1].1", "o[1].2.1", "o[1].2.2[1]", "o[1].2.2[2]", "o[2].1"))
  expect_equal(unname(draws[, "o[2].2.2[2]"]), c(20, 20, 20))
  expect_equal(draws[, "o[2].2.2[1]"], draws[, "z"])
  alone <- cl_stan(code = "parameters { tuple(real, real) t; } model { target += t.1 - t.2; }")()
  expect_equal(as.vector(alone(t = list(3, 1))), 2)
  expect_equal(as.vector(alone(list(t = list(3, 1)))), 2)
  expect_output(print(b), "t.1; simplex[3] t.2", fixed = TRUE)
  expect_output(print(cl_stan(code = "data { array[2] tuple(int, vector[3]) x; }")),
                "array[2] tuple(int, vector[3]) x", fixed = TRUE)
})

test_that("tuples of data that do not fit, and wrong sizes", {
  m <- cl_stan(code = "data { array[2] tuple(int<lower=1>, vector[2]) x; }
    transformed data { tuple(vector[2], real<upper=1>) z = (x[1].2, x[1].2[1]);
      array[2] tuple(int, vector[2]) s = x[1:x[1].1]; } parameters { real a; }
    model { target += -a^2; }")
  good <- list(2, c(0, 1))
  expect_s3_class(m(list(x = list(good, good))), "cl_stan_density")
  expect_error(m(list(x = list(1:2, good))), "data 'x[1]' must be a list of 2 parts", fixed = TRUE,
               class = "statcl_error_stan")
  expect_error(m(list(x = list(good))), "must be a list of 2 tuples", class = "statcl_error_stan")
  expect_error(m(list(x = list(good, list(0, c(1, 2))))), "'x[2].1' is 0, but must be at least 1",
               fixed = TRUE, class = "statcl_error_stan")
  expect_error(m(list(x = list(good, list(1, 1:3)))), "'x[2].2' has the size 3", fixed = TRUE,
               class = "statcl_error_stan")
  expect_error(m(list(x = list(list(2, c(3, 1)), good))), "transformed data 'z.2' is 3",
               class = "statcl_error_stan")
  expect_error(m(list(x = list(list(1, c(0, 1)), good))),
               "size 1 is assigned to a variable of size 2", class = "statcl_error_stan")
})

test_that("an array of tuples of two dimensions", {
  check_stan_case(stan_case("real a;", "array[2, 3] tuple(int, real) t;
    t[2, 3].2 = a; t[1, 3] = (2, a^2); target += t[2, 3].2 + t[1, 3].1 * t[1, 3].2;",
                            list(a = 0.7), function(p) p$a + 2 * p$a^2), "array[2, 3]")
})
