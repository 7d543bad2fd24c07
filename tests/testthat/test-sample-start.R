# Where chains of cl_sample() start: `start`, and `init` as a word.

skip_on_cran() # long; run by ./dev check

test_on_host("chains start at draws of an approximation, at the mode, or anywhere", {
  f <- cl_gradient(function(a, b) -sum((a - 50)^2) / 2 - (b - log(b)))
  init <- list(a = c(0, 0), b = 1)
  first <- function(..., chains = 3) {
    fit <- quiet_sample(f, init, chains = chains, warmup = 0, iter = 1, step_size = 1e-9,
                        max_depth = 1, transform = list(b = cl_lower(0)), ...)
    matrix(fit$draws[1, , ], chains)
  }
  near <- first(seed = 1, start = "pathfinder")
  expect_lt(max(abs(near[, 1:2] - 50)), 6)
  expect_gt(min(dist(near)), 0.01)
  expect_identical(first(seed = 1, start = "pathfinder"), near)
  expect_equal(first(start = "mode"), cbind(50, 50, rep(1, 3)), tolerance = 1e-4)
  anywhere <- first(start = "random", chains = 40, seed = 1)
  anywhere[, 3] <- log(anywhere[, 3])
  expect_true(max(abs(anywhere)) <= 2.001 && max(abs(anywhere)) > 1.8)
  expect_lt(max(abs(colMeans(anywhere))), 0.7)
  f(c(0, 0), 1)
  known <- quiet_sample(f, "random", seed = 1, chains = 2, warmup = 20, iter = 5,
                        transform = list(b = cl_lower(0)))
  other <- quiet_sample(f, init, start = "random", seed = 1, chains = 2, warmup = 20, iter = 5,
                        transform = list(b = cl_lower(0)))
  expect_identical(known$draws, other$draws)
  likelihood <- cl_likelihood("normal_id", rnorm(30, 5), cbind(sin(1:30), cos(1:30)))
  fit <- quiet_sample(likelihood, "mode", chains = 2, warmup = 100, iter = 20,
                      transform = list(sigma = cl_lower(0)), seed = 1)
  expect_identical(dimnames(fit$draws)[[3]], c("alpha", "beta[1]", "beta[2]", "sigma"))
})

test_that("a start that is impossible is refused", {
  refused <- function(argument, ...) {
    expect_fault(cl_sample(standard_normal, ...), "argument", argument = argument)
  }
  refused("init", "pathfinder")
  refused("init", "somewhere")
  refused("start", 0, start = "anywhere")
  refused("init", function(chain) chain, start = "mode")
})

test_that("arguments keep their names, however the density is evaluated, and for approximations", {
  init <- list(b = c(u = 0, v = 0), m = matrix(0, 2, 1, dimnames = list(c("p", "q"), "r")))
  value <- function(b, m) {
    dnorm(b["u"], 1, log = TRUE) + dnorm(b[["v"]], -1, log = TRUE) - m["p", 1]^2 / 2 -
      m[["q", "r"]]^2 / 2
  }
  by_hand <- function(b, m) {
    structure(unname(value(b, m)), gradient = list(b = c(1 - b["u"], -1 - b["v"]), m = -m))
  }
  several <- function(b, m) {
    value <- -colSums((b - c(1, -1))^2) / 2 - colSums(m^2, dims = 2) / 2 + 0 * b["u", ]
    structure(value, gradient = list(b = c(1, -1) - b, m = -m))
  }
  run <- function(f, ...) {
    cl_sample(f, init, chains = 2, warmup = 100, iter = 400, seed = 1, ...)
  }
  compiled <- cl_gradient(value)
  fits <- list(run(by_hand), run(compiled), run(several, batch = TRUE), run(compiled, batch = TRUE),
               run(cl_log_posterior(by_hand, ~ 0 * sum(b))),
               run(cl_log_posterior(~ dnorm(b["u"], 1, log = TRUE) - (b["v"] + 1)^2 / 2,
                                    ~ -sum(m^2) / 2)))
  for (fit in fits) {
    expect_identical(colnames(as.matrix(fit))[1:2], c("b[u]", "b[v]"))
    expect_equal(unname(colMeans(as.matrix(fit))), c(1, -1, 0, 0), tolerance = 0.2)
  }
  mode <- cl_optimise(compiled, init)
  laplace <- cl_laplace(compiled, mode, seed = 1)
  expect_identical(colnames(as.matrix(laplace)), names(coef(mode)))
  expect_identical(names(coef(mode))[1:2], c("b[u]", "b[v]"))
  made <- as.matrix(cl_generate(laplace, function(b) b[["v"]]))
  expect_equal(as.vector(made), as.vector(as.matrix(laplace)[, "b[v]"]))
})
