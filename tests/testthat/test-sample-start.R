# Where chains of cl_sample() start: `start`, and `init` as a word.

skip_on_cran() # long; run by ./dev check

test_that("chains start at draws of an approximation, at the mode, or anywhere", {
  on_host({
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
