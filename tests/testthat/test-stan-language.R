# The language of Stan programs: types, operators, indices, loops, branches and functions, each
# against an R function of the same density.

test_that("operators of vectors and matrices", {
  A <- matrix(c(2, 0.5, -0.3, 0.7, 1.5, 0.2), 3)
  S <- crossprod(A) + diag(2)
  check <- function(model, density, name = model) {
    check_stan_case(stan_case("vector[2] b; row_vector[3] r;", model,
                              list(b = c(0.5, -1), r = c(0.2, 0.3, -0.4)), density,
                              "matrix[3, 2] A; matrix[2, 2] S; int k; int l;",
                              list(A = A, S = S, k = 7, l = -2)), name)
  }
  check("target += sum(A * b);", function(p) sum(A %*% p$b))
  check("target += r * A * b;", function(p) sum(p$r * A %*% p$b))
  check("target += sum(b * r);", function(p) sum(outer(p$b, p$r)))
  check("target += sum(square(r * A));", function(p) sum((p$r %*% A)^2))
  check("target += sum(S \\ b);", function(p) sum(solve(S, p$b)))
  check("target += sum(b' / S);", function(p) sum(solve(t(S), p$b)))
  check("target += sum(b .* b ./ (1 + square(b)));", function(p) sum(p$b^2 / (1 + p$b^2)))
  check("target += sum(A' .* rep_matrix(b, 3)) + sum(2 - r);",
        function(p) sum(t(A) * p$b) + sum(2 - p$r))
  check("target += (k / l) * b[1] + (k % 4) * b[2] + k %/% l;",
        function(p) -3 * p$b[1] + 3 * p$b[2] - 3)
  check("target += b[1]^2 - pow(r[1], 3) + (-b[2])^k;",
        function(p) p$b[1]^2 - p$r[1]^3 + (-p$b[2])^7)
  check("target += (k > 3 && l < 0) * b[1] + !(k == 7 || l == 1) * b[2];", function(p) p$b[1])
  check("vector[2] c = b; c += b; c *= 3; c[1] -= 1; c ./= b; target += sum(c .* b);",
        function(p) sum(6 * p$b) - 1)
})

test_that("indices on both sides", {
  x <- matrix(1:12 / 10, 3)
  check <- function(model, density, name = model) {
    check_stan_case(stan_case("vector[4] b; matrix[3, 4] m; array[2, 3] vector[2] a;", model,
                              list(b = c(0.5, -1, 2, 0.1), m = x - 0.3,
                                   a = array(1:12 / 7, c(2, 3, 2))), density,
                              "matrix[3, 4] x; array[3] int i; array[2, 2] int t;",
                              list(x = x, i = c(3, 1, 3), t = matrix(c(1, 3, 2, 4), 2))), name)
  }
  check("target += sum(b[2:3]) + 2 * b[4] + sum(b[:2]) + sum(b[3:]) + sum(b[:]);",
        function(p) sum(p$b[2:3]) + 2 * p$b[4] + 2 * sum(p$b))
  check("target += dot_product(b[i], b[i]) + b[i[2]];", function(p) sum(p$b[c(3, 1, 3)]^2) + p$b[1])
  check("target += m[2, 3] * b[1] + m[2] * b + sum(m[:, 2]) + sum(m[i, 2:3]);", function(p) {
    p$m[2, 3] * p$b[1] + sum(p$m[2, ] * p$b) + sum(p$m[, 2]) + sum(p$m[c(3, 1, 3), 2:3])
  })
  check("target += a[1, 2][2] * b[1] + a[2, 3, 1] + sum(a[2, 1]) + dot_self(to_vector(a[1][3]));",
        function(p) p$a[1, 2, 2] * p$b[1] + p$a[2, 3, 1] + sum(p$a[2, 1, ]) + sum(p$a[1, 3, ]^2))
  check("target += b[t[1, 2]] * b[t[2, 1]] + sum(b[t[2]]);",
        function(p) p$b[2] * p$b[3] + p$b[3] + p$b[4])
  check("vector[4] c = rep_vector(1, 4); c[2] = b[1]; c[3:4] = b[1:2]; target += dot_self(c);",
        function(p) 1 + p$b[1]^2 + sum(p$b[1:2]^2))
  check(paste("matrix[3, 4] n = x; n[2] = b'; n[1, 3] = b[2]; n[:, 1] = b[2:4];",
              "n[{1, 3}, 2:3] = m[1:2, 1:2]; target += sum(square(n));"), function(p) {
                n <- x
                n[2, ] <- p$b
                n[1, 3] <- p$b[2]
                n[, 1] <- p$b[2:4]
                n[c(1, 3), 2:3] <- p$m[1:2, 1:2]
                sum(n^2)
              })
  check("array[2] vector[3] v; v[1] = b[1:3]; v[2] = {b[1], b[2], 2.5}[{3, 2, 1}][1] * b[2:4];
         target += sum(v[1] .* v[2]);", function(p) sum(2.5 * p$b[1:3] * p$b[2:4]))
  check("array[2, 2] real q = {{b[1], b[2]}, {b[3], 4}}; target += q[1, 2] * q[2, 1] + sum(q[2]);",
        function(p) p$b[2] * p$b[3] + p$b[3] + 4)
  check("matrix[2, 2] q = [[b[1], b[2]], [b[3], 4]]; target += q[1, 2] * q[2, 1] + q[2] * b[1:2];",
        function(p) p$b[2] * p$b[3] + p$b[3] * p$b[1] + 4 * p$b[2])
})

test_that("loops, of which some are computed at once", {
  y <- c(0.3, 1.2, -0.7, 2, 0.1, 0.5)
  g <- c(1, 2, 1, 3, 2, 2)
  check <- function(model, density, name = model) {
    check_stan_case(stan_case("vector[3] a; real<lower=0> s;", model,
                              list(a = c(0.5, -1, 2), s = 1.3), density,
                              "int N; vector[N] y; array[N] int g; matrix[N, 2] x;
                               array[2] vector[3] w; array[2, 3, 4] real w3;",
                              list(N = 6, y = y, g = g, x = cbind(1, y), w = w, w3 = w3)), name)
  }
  w <- matrix(1:6 / 10, 2)
  w3 <- array(sqrt(1:24), 2:4)
  plain <- function(p) sum(dnorm(y, p$a[g], p$s, log = TRUE))
  check("for (n in 1:N) y[n] ~ normal(a[g[n]], s);", plain)
  check("for (n in 1:3) target += 0.1 * target() + a[n];",
        function(p) 1.1 * (1.1 * p$a[1] + p$a[2]) + p$a[3])
  check("for (n in 1:N) { real m = a[g[n]]; target += normal_lpdf(y[n] | m, s); }", plain)
  check("vector[N] m; for (n in 1:N) m[n] = a[g[n]]; y ~ normal(m, s);", plain)
  check("real m; for (n in 1:N) { m = a[g[n]]; y[n] ~ normal(m, s); }", plain)
  check("int n = 0; while (1) { n += 1; if (n > N) break; y[n] ~ normal(a[g[n]], s); }", plain)
  check("for (n in 1:(2 * N)) { if (n > N) continue; y[n] ~ normal(a[g[n]], s); }", plain)
  check("for (v in y) v ~ normal(a[1], s);", function(p) sum(dnorm(y, p$a[1], p$s, log = TRUE)))
  check("for (n in 1:N) target += dot_product(x[n], a[1:2]) * n;",
        function(p) sum(1:6 * (p$a[1] + y * p$a[2])))
  check("for (n in 1:N) target += s;", function(p) 6 * p$s)
  check("for (i in 1:3) for (j in 1:i) target += a[j] * i;",
        function(p) 6 * p$a[1] + 5 * p$a[2] + 3 * p$a[3])
  check("for (r in w) target += r[3] * a[1];", function(p) sum(w[, 3]) * p$a[1])
  check("for (n in 1:3) target += w3[2, n, 4] * a[n];",
        function(p) sum(w3[2, , 4] * p$a[1:3]))
  check("for (n in 1:N) if (g[n] == 1) y[n] ~ normal(a[1], s); else if (g[n] == 2)
         target += -square(y[n] - a[2]); else target += s;", function(p) {
           sum(dnorm(y[g == 1], p$a[1], p$s, log = TRUE)) - sum((y[g == 2] - p$a[2])^2) + p$s
         })
  check("for (n in 1:N) { real m = s; if (g[n] == 1) m = a[1]; target += m * y[n]; }",
        function(p) sum(ifelse(g == 1, p$a[1], p$s) * y))
  check("vector[N] f; f[1] = a[1]; for (n in 2:N) f[n] = 0.5 * f[n - 1] + y[n] * s;
         target += sum(square(f));", function(p) {
           f <- numeric(6)
           f[1] <- p$a[1]
           for (n in 2:6) f[n] <- 0.5 * f[n - 1] + y[n] * p$s
           sum(f^2)
         })
  mixture <- function(p) {
    sum(log(0.3 * dnorm(y, p$a[1], p$s) + 0.7 * dnorm(y, p$a[2], p$s)))
  }
  check("for (n in 1:N) target += log_mix(0.3, normal_lpdf(y[n] | a[1], s),
         normal_lpdf(y[n] | a[2], s));", mixture)
  check("for (n in 1:N) { vector[2] l = log([0.3, 0.7]');
         for (k in 1:2) l[k] += normal_lpdf(y[n] | a[k], s); target += log_sum_exp(l); }", mixture)
  check("array[2] real l; for (n in 1:N) { l[1] = log(0.3) + normal_lpdf(y[n] | a[1], s);
         l[2] = log(0.7) + normal_lpdf(y[n] | a[2], s); target += log_sum_exp(l); }", mixture)
  check("for (n in 1:N) y[n] ~ normal(x[n] * a[1:2], s);",
        function(p) sum(dnorm(y, cbind(1, y) %*% p$a[1:2], p$s, log = TRUE)))
  check("matrix[N, 2] m; for (n in 1:N) for (k in 1:2) m[n, k] = x[n, k] * a[k];
         target += sum(exp(m));", function(p) sum(exp(t(t(cbind(1, y)) * p$a[1:2]))))
  check("real t = 0; for (n in 1:N) t += a[g[n]] * y[n]; target += square(t);",
        function(p) sum(p$a[g] * y)^2)
  check("for (i in 1:0) target += a[i];", function(p) 0)
  # the second operand is computed only where the first does not decide
  check("for (n in 1:N) if (n > 1 && g[n - 1] == 2) target += a[1] * n;", function(p) 9 * p$a[1])
  check("for (n in 1:N) { int k = g[n]; if (n == 1 || g[n - 1] == k) target += s * n; }",
        function(p) 7 * p$s)
  check("for (n in 1:N) { int k = 2 - g[n]; target += s * (k != 0 && 3 / k == -3); }",
        function(p) p$s)
  check("for (n in 1:N) { int k = 2 - g[n]; target += k == 0 ? s : s * (3 / k); }",
        function(p) 6 * p$s)
})

test_that("sums in an element of a vector or matrix", {
  check <- function(model, density) {
    check_stan_case(stan_case("vector[4] v; matrix[2, 3] m;", model,
                              list(v = c(0.3, -1, 2, 0.5), m = matrix(1:6 / 5, 2)), density,
                              "array[4] int k; vector[3] y;",
                              list(k = c(2, 1, 2, 1), y = c(1, -1, 2))), model)
  }
  check("vector[4] s = v; for (i in 1:4) for (j in 1:(i - 1)) s[i] += v[j] * y[i - j];
    target += sum(s .* s);", function(p) {
      y <- c(1, -1, 2)
      s <- p$v
      for (i in 2:4) for (j in seq_len(i - 1)) s[i] <- s[i] + p$v[j] * y[i - j]
      sum(s^2)
    })
  # no iterations, of which the element is out of bounds; a bound that the loop changes
  check("vector[2] s = [0, 0]'; int n = 2; for (j in 1:0) s[5] += v[j];
    for (j in 1:n) { n = 3; s[2] += v[j]; } target += n * s[2] + v[3];",
        function(p) 3 * (p$v[1] + p$v[2]) + p$v[3])
  check("matrix[2, 3] s = m; for (j in 1:4) { real a = v[j] * j; if (j == 4) break;
    s[k[2], 3] += a; } for (j in 1:3) { s[1, j] += m[2, j]; s[2, 2] += s[1, j]; }
    target += sum(s) + s[1, 3];", function(p) {
      s <- p$m
      s[1, 3] <- s[1, 3] + sum(p$v[1:3] * 1:3)
      s[1, ] <- s[1, ] + p$m[2, ]
      s[2, 2] <- s[2, 2] + sum(s[1, ])
      sum(s) + s[1, 3]
    })
  check("vector[2] s = [1, 2]'; for (j in 1:4) s[k[j]] += v[j]; for (j in 1:2) s[1] += s[2] * j;
    target += s[1] * s[2];",
        function(p) (1 + p$v[2] + p$v[4] + 3 * (2 + p$v[1] + p$v[3])) * (2 + p$v[1] + p$v[3]))
  b <- cl_stan(code = "parameters { vector[3] v; } model { v ~ normal(0, 1); }
    generated quantities { vector[3] s = v; array[2] vector[3] a = {v, 2 * v}; vector[3] r = a[2];
      for (i in 1:3) for (j in i:3) s[i] += v[j] + a[2][j]; int z = 0;
      for (i in 1:3) z += a[1, i] > 0; int big = 2147483647; if (v[1] > 9) z = big * big; }")()
  v <- c(1, -2, 3)
  out <- stan_output_function(environment(b)$state)(v)
  expect_equal(out$s, v + 3 * rev(cumsum(rev(v))))
  expect_equal(c(out$r, out$z), c(2 * v, 2))
  expect_error(stan_output_function(environment(b)$state)(c(10, 1, 1)), "2147483647")
})

test_that("branches that depend on parameters", {
  check <- function(model, point, density, functions = "") {
    check_stan_case(stan_case("real a; real b;", model, point, density, functions = functions),
                    model)
  }
  for (a in c(-0.5, 0.8)) {
    point <- list(a = a, b = 0.3)
    check("target += a > 0 ? a * b : exp(a);", point,
          function(p) if (p$a > 0) p$a * p$b else exp(p$a))
    check("real c = 1; if (a > 0) { c = a * b; target += b; } else c = b; target += c;", point,
          function(p) if (p$a > 0) p$a * p$b + p$b else p$b)
    check("if (a > 0 && b > 0) target += log(a); else if (a < -1) target += 3; target += a * b;",
          point, function(p) (if (p$a > 0) log(p$a) else 0) + p$a * p$b)
    check("target += f(a) * b;", point,
          function(p) if (p$a > 0) p$a^2 * p$b else -3 * p$a * p$b,
          "real f(real x) { if (x > 0) return x^2; return -3 * x; }")
  }
  check("target += a > 0 && b > 0 ? a : 2 * a; target += (a > 0 || b > 1) * a;",
        list(a = 0.8, b = -0.3), function(p) 3 * p$a)
  zero <- cl_stan(code = "data { int k; } parameters { real a; } model { target += (3 / k) * a; }")
  expect_error(zero(list(k = 0))(a = 1), "divided by zero", class = "statcl_error_stan")
  # the code of nested branches grows with their number
  size <- vapply(c(5, 10), function(n) {
    branch <- sprintf("target += %d * a; if (a > %d) { ", seq_len(n), seq_len(n))
    program <- paste0("parameters { real a; } model { ", strrep("} else target += a;", n), " }")
    program <- sub("model { ", paste0("model { ", paste(branch, collapse = "")), program,
                   fixed = TRUE)
    model <- cl_stan(code = program)
    expect_equal(as.vector(model()(a = 3.5)), 3.5 * 11)
    length(all.names(stan_braces(environment(model)$code$model)))
  }, 0)
  expect_lt(size[2], 3 * size[1])
})

test_that("functions of the program", {
  check_stan_case(stan_case("real a; vector[2] v;",
                            "target += f(a) + f(v) + fib(7) * a; add_lp(a);",
                            list(a = 0.4, v = c(1, 2)), function(p) {
                              p$a^2 + sum(p$v) * 2 + 13 * p$a - p$a^3
                            }, functions = "
    real f(real x) { return x^2; }
    real f(vector x) { return 2 * sum(x); }
    int fib(int n) { if (n < 3) return 1; return fib(n - 1) + fib(n - 2); }
    void add_lp(real a) { target += -a^3; }"), "overloads, recursion, _lp")
  check_stan_case(stan_case("real<lower=0> r; array[2] real y;", "y ~ steep(r);
    target += steep_lupdf(y[1] | r);", list(r = 1.4, y = c(0.3, 0.5)), function(p) {
      g <- function(y) log(p$r) - p$r * y
      sum(g(p$y)) + g(p$y[1])
    }, functions = "
    real steep_lpdf(array[] real y, real r) { real s = 0; for (v in y) s += log(r) - r * v;
      return s; }
    real steep_lpdf(real y, real r) { return log(r) - r * y; }"), "_lpdf")
})

test_that("reject and transformed data", {
  b <- cl_stan(code = "data { int N; } transformed data { vector[N] z; for (n in 1:N) z[n] = n^2; }
    parameters { real a; } model { if (N > 3) reject(\"N is \", N); target += a * sum(z); }")
  expect_equal(as.vector(b(list(N = 3))(a = 2)), 28)
  found <- b(list(N = 4))(a = 2)
  expect_identical(as.vector(found), -Inf)
  expect_identical(attr(found, "rejected"), "line 2: reject: N is 4")
  # a condition that depends on parameters: compiled, also if branches are nested
  b <- cl_stan(code = "parameters { real a; real b; } model { if (a > 1) {
    if (b > 2) reject(\"both\"); else target += b; } else target += a * b; }")()
  check <- function(a, b_, want, rejected = NULL) {
    found <- b(a = a, b = b_)
    expect_equal(as.vector(found), want)
    expect_identical(attr(found, "rejected"), rejected)
  }
  check(0.5, 3, 1.5)
  check(1.5, 1, 1)
  check(1.5, 3, -Inf, "line 2: reject: both")
  expect_false(environment(environment(b)$state$namedFALSE)$retrace)
})

test_that("functions reject where a condition on parameters holds", {
  b <- cl_stan(code = "
    functions {
      real f(real x) {
        real y = 2 * x;
        if (x < 0) reject(\"x is \", x);
        y += 1;
        if (x > 100) { reject(\"large\"); }
        return log(y);
      }
      complex g(real x) { if (x > 3) reject(\"g\"); return to_complex(x, 1); }
      tuple(real, vector) h(vector x) { if (x[1] < 0 || x[2] > 5) reject(\"h\");
        return (x[1], x .* x); }
    }
    parameters { real a; vector[2] v; }
    model { tuple(real, vector[2]) t = h(v); target += f(a) + abs(g(a)) + t.1 + t.2[2]; }")()
  check <- function(a, v, rejected = NULL) {
    found <- b(a = a, v = v)
    want <- if (is.null(rejected)) log(2 * a + 1) + sqrt(a^2 + 1) + v[1] + v[2]^2 else NaN
    expect_equal(as.vector(found), want)
    expect_identical(attr(found, "rejected"), rejected)
    if (is.null(rejected)) {
      expect_equal(attr(found, "gradient"), list(a = 2 / (2 * a + 1) + a / sqrt(a^2 + 1),
                                                 v = c(1, 2 * v[2])))
    }
  }
  check(0.5, c(1, 2))
  check(-1, c(1, 2), "line 5: reject: x is -1")
  check(4, c(1, 2), "line 10: reject: g")
  check(0.5, c(-1, 2), "line 11: reject: h")
  check(0.5, c(1, 6), "line 11: reject: h")
  expect_false(environment(environment(b)$state$namedFALSE)$retrace)
})

test_that("functions reject in loops, and functions without a value do", {
  b <- cl_stan(code = "functions {
      vector f(vector x) {
        vector[size(x)] y;
        for (i in 1:size(x)) {
          if (x[i] > 9) { reject(\"f \", i); } else y[i] = x[i]^2;
        }
        return y;
      }
      void small(vector x, real m) { for (i in 1:size(x)) if (x[i] < m) reject(\"small \", i); }
      void both(vector x) { small(x, -2); small(2 * x, -3); }
      real last(vector x) { both(-x); if (x[1] == 7) return 0; return x[2]; }
      void never(vector x) { return; }
    }
    parameters { vector[2] x; }
    transformed parameters { both(x); }
    model { never(x); target += sum(f(x)) + last(x); }")()
  check <- function(x, want, rejected = NULL) {
    found <- b(x = x)
    expect_identical(as.vector(found), want)
    expect_identical(attr(found, "rejected"), rejected)
    expect_false(environment(environment(b)$state[["namedFALSE"]])$retrace)
    if (is.null(rejected)) expect_equal(attr(found, "gradient")$x, 2 * x + (x[1] != 7) * 0:1)
  }
  check(c(1, 1.25), 3.8125)
  check(c(1, -1.75), NaN, "line 9: reject: small 2")
  check(c(-3, 1), NaN, "line 9: reject: small 1")
  check(c(1, 1.75), NaN, "line 9: reject: small 2")
  check(c(10, 1), NaN, "line 5: reject: f 1")
})

test_that("where parameters decide which statements run, one that fails rejects", {
  b <- suppressMessages(cl_stan(code = "parameters { real<lower=0> a; } model { int n = 0;
    vector[3] x; real s = 0; while (s < a) { n += 1; x[n] = n; s += x[n]; }
    target += -a + 0.1 * s; a ~ exponential(1); }")())
  expect_equal(as.vector(b(a = 2.5)), -2.5 + 0.3 - 2.5)
  found <- b(a = 7)
  expect_identical(as.vector(found), -Inf)
  expect_match(attr(found, "rejected"), "line 2: .*'x' is out of bounds")
  expect_identical(as.vector(b$unconstrained(log(7))), -Inf)
})

test_that("print() prints in transformed data, calls of the density and generated quantities", {
  model <- function() cl_stan(code = "functions { real f(real a) { print(\"f \", a); return a; } }
    transformed data { print({1, 2}, \" \", [[1.5, 2], [3, 4]]); }
    parameters { real<lower=0> a; } model { print(\"a \", a); f(a) ~ normal(0, 1); }
    generated quantities { real z = a; print(\"z\"); }")
  expect_message(m <- model(), "line 1: print\\(\\)", class = "statcl_message_stan")
  expect_output(b <- m(), "[1,2] [[1.5,2],[3,4]]", fixed = TRUE)
  expect_output(b(a = 2), "a 2\nf 2", fixed = TRUE)
  expect_output(b$unconstrained(log(2)), "a 2\nf 2", fixed = TRUE)
  drawn <- capture.output(fit <- suppressWarnings(cl_laplace(b, draws = 3, seed = 1)))
  expect_identical(drawn, rep("z", 3))
  expect_output(cl_stan(code = "transformed data { for (i in 1:30) print(i, \"-\"); }")(), "30-")
  expect_silent(cl_stan(code = "parameters { real a; } generated quantities { print(a); }"))
})
