# Transformed parameters and generated quantities of many draws: compiled, and as R computes them.

both_ways <- function(code, data = list(), draws = 40) {
  at <- function(together) {
    b <- cl_stan(code = code)(data)
    state <- environment(b)$state
    if (!together) state$together <- FALSE
    set.seed(1, "L'Ecuyer-CMRG")
    u <- matrix(rnorm(state$dimension * draws), state$dimension)
    own <- attr(suppressMessages(as_density(b)), "own")$drawn
    values <- suppressWarnings(own$values(u, .Random.seed))
    rownames(values) <- own$names
    list(values = values, compiled = is.list(state$together))
  }
  kind <- RNGkind()
  on.exit(RNGkind(kind[1]))
  list(plain = at(FALSE)$values, together = at(TRUE))
}

expect_both_ways <- function(code, data = list(), compiled = TRUE, draws = 40) {
  found <- both_ways(code, data, draws)
  expect_identical(found$together$compiled, compiled)
  expect_equal(found$together$values, found$plain, tolerance = 1e-12)
  found$plain
}

test_that("compiled quantities are those that R computes", {
  values <- expect_both_ways("data { int N; vector[N] y; }
    parameters { real mu; real<lower=0> tau; matrix[2, 3] z; }
    transformed parameters {
      matrix[3, 2] m;
      array[2] vector[N] v;
      for (i in 1:3) for (j in 1:2) m[i, j] = mu + tau * z[j, i];
      for (n in 1:N) v[2, n] = n * tau;
      v[1] = v[2] - y;
    }
    model { mu ~ normal(0, 1); }
    generated quantities {
      vector[N] log_lik;
      array[N] real rep;
      real total = 0;
      for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | mu, tau);
      for (n in 1:N) rep[n] = normal_rng(v[1, n], tau);
      for (n in 1:N) total += log_lik[n];
      real last = total + mean(rep);
      int<lower=0> positive = mu > 0;
    }", list(N = 4, y = c(1, 3, 2, 5)))
  expect_equal(values["total", ], colSums(values[paste0("log_lik[", 1:4, "]"), ]))
  expect_equal(values["m[3,2]", ], values["mu", ] + values["tau", ] * values["z[2,3]", ])
})

test_that("a quantity that is changed after its use by a random one keeps its order", {
  values <- expect_both_ways("parameters { real a; }
    transformed parameters { vector[2] b; for (i in 1:2) b[i] = a * i; }
    model { a ~ normal(0, 1); }
    generated quantities {
      real x = 1;
      real y = normal_rng(x, 1e-9);
      vector[2] w = rep_vector(a, 2);
      w[2] = y;
      x = 5;
      real z = w[2];
    }")
  expect_equal(range(values["y", ]), c(1, 1), tolerance = 1e-7)
  expect_identical(unique(values["x", ]), 5)
  expect_identical(values["w[1]", ], values["a", ])
})

test_that("what is not compiled is computed by R", {
  # a condition on values
  expect_both_ways("parameters { vector[3] a; } model { a ~ normal(0, 1); }
    generated quantities { real largest = a[1];
      for (i in 2:3) if (a[i] > largest) largest = a[i]; }", compiled = FALSE)
  # a draw that is rejected
  values <- both_ways("functions { real checked(real a) {
      if (a > 0) reject(\"a is \", a);
      return a; } }
    parameters { real a; } transformed parameters { real s = 0; for (i in 1:3) s += a; }
    model { a ~ normal(0, 1); } generated quantities { real c = checked(a); }")
  expect_equal(values$together$values, values$plain)
  expect_identical(is.nan(values$plain["c", ]), values$plain["a", ] > 0)
  # not a number at some draws
  expect_both_ways("parameters { real a; } model { a ~ normal(0, 1); }
    generated quantities { vector[2] r; for (i in 1:2) r[i] = sqrt(a * i); }")
})

test_that("blocks are opened, unless their names are used elsewhere", {
  code <- "functions { vector f(real t, vector y, real k) { return -k * y; } }
    parameters { real<lower=0> k; }
    model { k ~ exponential(1); }
    generated quantities { vector[2] a; vector[2] rep;
      { array[2] vector[1] y = ode_rk45(f, [1]', 0, {0.5, 1.0}, k); real s = 0;
        for (n in 1:2) s += y[n, 1];
        for (n in 1:2) rep[n] = normal_rng(y[n, 1] + s, 1e-9);
      }
      { real %s = k; for (n in 1:2) a[n] = %s * n; } }"
  for (name in c("z", "y", "n")) {
    if (name == "n") code <- gsub("n in 1:2) a[n]", "i in 1:2) a[i]", code, fixed = TRUE)
    values <- expect_both_ways(gsub("%s", name, gsub("* n; }", if (name == "n") "* i; }" else
      "* n; }", code, fixed = TRUE), fixed = TRUE))
    sum <- exp(-values["k", ] / 2) + exp(-values["k", ])
    expect_equal(values["rep[2]", ], sum + exp(-values["k", ]), tolerance = 1e-6)
    expect_equal(values["a[2]", ], 2 * values["k", ])
  }
})

test_that("draws whose values violate their constraints are rejected", {
  values <- both_ways("parameters { real a; }
    transformed parameters { vector<upper=1>[2] b; for (i in 1:2) b[i] = a * i; }
    model { a ~ normal(0, 1); }
    generated quantities { real r = normal_rng(0, 1); array[2] real<lower=-1> c;
      for (i in 1:2) c[i] = a + i / 2.0; }")
  expect_equal(values$together$values, values$plain)
  expect_identical(is.nan(values$plain["c[1]", ]), abs(values$plain["a", ] + 0.5) > 1)
})

test_that("statements without loops are compiled for many draws", {
  code <- "data { int N; }
    parameters { vector[N] z; real<lower=0> tau; simplex[3] s; }
    transformed parameters { vector[N] theta = z * tau; simplex[3] p = reverse(s); }
    model { z ~ normal(0, 1); }
    generated quantities { matrix[2, N] m = [theta', z']; real<upper=1> r = log(tau); }"
  expect_both_ways(code, list(N = 2), compiled = FALSE, draws = stan_many_draws - 1L)
  values <- both_ways(code, list(N = 2), stan_many_draws)
  expect_true(values$together$compiled)
  expect_equal(values$together$values, values$plain, tolerance = 1e-12)
  own <- c("z[1]", "z[2]", "tau", sprintf("s[%d]", 1:3)) # by R in both
  expect_identical(values$together$values[own, ], values$plain[own, ])
  rejected <- values$plain["tau", ] > exp(1)
  expect_gt(sum(rejected), 0)
  expect_identical(is.nan(values$together$values["m[1,2]", ]), rejected)
  right <- values$plain[, !rejected]
  expect_equal(right["m[1,2]", ], right["z[2]", ] * right["tau", ])
})

test_that("a differential equation is solved by the compiled function", {
  values <- expect_both_ways("functions { vector f(real t, vector y, real k) { return -k * y; } }
    parameters { real<lower=0> k; }
    transformed parameters { array[2] vector[1] y =
      ode_rk45(f, [1]', 0, {0.5, 1.0}, k); }
    model { k ~ exponential(1); }")
  expect_equal(values["y[2,1]", ], exp(-values["k", ]), tolerance = 1e-6)
})

# Each draw by itself.
draw_by_draw <- function(b, u) {
  f <- stan_output_function(environment(b)$state)
  unname(apply(u, 2L, function(x) as.double(unlist(f(x)))))
}

test_that("parameters that are functions of single numbers are found for all draws at once", {
  declared <- c("real a; vector<lower=-1>[2] v; matrix<upper=2>[2, 3] m;",
                "array[2, 3] real<lower=low, upper=high> r; real b;",
                "array[3] vector<lower=low>[2] w; vector<lower=lows>[2] y;",
                "array[2] matrix<lower=0, upper=1>[2, 2] q;",
                "row_vector[3] x; vector<lower=0>[0] none;")
  given <- list(low = -2, high = 3, lows = c(-1, 4))
  for (d in declared) {
    b <- cl_stan(code = sprintf("data { real low; real high; vector[2] lows; }
                                 parameters { %s } model { }", d))(given)
    state <- environment(b)$state
    u <- matrix(sin(seq_len(30 * state$dimension)), state$dimension)
    expect_false(is.null(stan_parameter_draws(state, u)), label = d)
    drawn <- attr(suppressMessages(as_density(b)), "own")$drawn
    expect_equal(unname(drawn$values(u, NULL)), draw_by_draw(b, u), tolerance = 1e-15, label = d)
  }
  for (d in c("real<lower=0> a; real<lower=a> b;", "simplex[3] p;",
              "real<offset=2, multiplier=3> a; ordered[2] o;")) {
    b <- cl_stan(code = sprintf("parameters { %s } model { }", d))(list())
    state <- environment(b)$state
    u <- matrix(sin(seq_len(30 * state$dimension)), state$dimension)
    expect_null(stan_parameter_draws(state, u), label = d)
    drawn <- attr(suppressMessages(as_density(b)), "own")$drawn
    expect_equal(unname(drawn$values(u, NULL)), draw_by_draw(b, u), label = d)
  }
})
