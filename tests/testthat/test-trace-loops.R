# What a loop assigns is recorded by one call if it is arithmetic (R/trace-loops.R): it has the
# values of R, and the nodes of the same code outside of loops.

random_formula <- function(depth) {
  leaves <- list(quote(p[t]), quote(p[t - 1L]), quote(x[t - 1]), quote(q), quote(y[t]),
                 quote(m[t, 2L]), quote(a[2, t]), quote(k), quote(t), quote(late), 2, 3L)
  if (depth == 0L) return(sample(leaves, 1L)[[1L]])
  forms <- list(quote(A + B), quote(A - B), quote(A * B), quote(A / (2 + B^2)), quote(-A),
                quote(exp(-A^2)), quote(log(3 + (A)^2)), quote(sqrt(1 + A^2) * B), quote((B - A)),
                quote((2 + A^2)^(B / (3 + B^2))), quote((2 + k^2)^1.5 * A - 2^y[t]),
                quote(dnorm(A, B, exp(y[t]), log = TRUE)), quote(dpois(count[t], 1 + A^2, TRUE)),
                quote(dbinom(count[t], k + 7L, 1 / (2 + A^2))), quote(normal(A, sd = 1 + B^2)),
                quote(normal(count[t], A * q, 2)), quote(swapped(1 + A^2, 2 + B^2) * q),
                quote(twice(A)), quote(outer_mean(A) - B), quote(first(A, B)))
  do.call(substitute, list(sample(forms, 1L)[[1L]],
                           list(A = random_formula(depth - 1L),
                                B = random_formula(sample.int(depth, 1L) - 1L))))
}

# A function with the formula in its loop, and one whose loop calls a function with it.
loop_and_steps <- function(formula) {
  home <- list2env(list(n = 6L, y = c(0.3, -1.2, 0.8, 1.5, 0.1, 2), k = 2L,
                        m = matrix(seq(-1, 1, length.out = 12L), 6L), count = c(3:7, 2L), s = 1.5,
                        normal = function(x, m = 0.2, sd) {
                          dnorm(x, 0.3, sd, log = TRUE)
                        },
                        swapped = function(r, x) dgamma(x, 2, r), twice = function(x) dnorm(x) * x,
                        outer_mean = function(x) dnorm(x, s), first = function(x, y) x),
                   parent = as.environment("package:stats"))
  for (name in ls(home)) if (is.function(home[[name]])) environment(home[[name]]) <- home
  environment(home$outer_mean) <- list2env(list(s = 0.7), parent = home)
  with_step <- function(statement) {
    f <- function(p, q) NULL
    body(f) <- bquote({
      a <- rbind(p, q * p)
      x <- numeric(n)
      total <- 0
      late <- q * p[1L]
      step <- function(t, x) .(formula)
      for (t in 2:n) {
        .(statement)
        total <- total + x[t]
      }
      total
    })
    environment(f) <- home
    f
  }
  list(with_step(bquote(x[t] <- .(formula))), with_step(quote(x[t] <- step(t, x))))
}

test_that("arithmetic in loops has the values of R and the nodes of single operations", {
  point <- list(p = c(0.2, -0.4, 0.7, 0.1, -0.3, 0.5), q = 0.6)
  with_cl(engine = "host", for (seed in seq_len(full_or_quick(300L, 60L))) {
    set.seed(seed)
    f <- loop_and_steps(random_formula(sample(2:4, 1L)))
    compiled <- lapply(f, cl_gradient)
    found <- lapply(compiled, function(g) suppressWarnings(do.call(g, point)))
    expect_equal(c(found[[1L]]), do.call(f[[1L]], point), tolerance = 1e-10)
    expect_identical(environment(compiled[[1L]])$nodes, environment(compiled[[2L]])$nodes)
    expect_identical(found[[1L]], found[[2L]])
  })
})

test_that("densities, and users' functions that consist of one, are of the usual form", {
  original <- statcl:::recorded_formula
  counting <- function(code, formula) {
    found <- .Call(r_trace_formula, tracing$tape, formula[[1L]], parent.frame())
    if (is.null(found)) return(code)
    usual <<- usual + 1
    found
  }
  environment(counting) <- list2env(list(usual = 0), parent = asNamespace("statcl"))
  on.exit(utils::assignInNamespace("recorded_formula", original, "statcl"))
  utils::assignInNamespace("recorded_formula", counting, "statcl")
  y <- rep(c(0.3, -1.2, 0.8, 1.5, 0.1), 4)
  count <- rep(0:1, 10)
  normal <- function(x, m, s) dnorm(x, m, s, log = TRUE)
  with_cl(engine = "host", cl_gradient(function(m, s) {
    total <- 0
    for (t in 2:20) {
      total <- total + normal(y[t], m + s * y[t - 1], exp(s))
      total <- total + dbinom(count[t], 1, 1 / (1 + exp(m)), log = TRUE) * log(2)
    }
    total
  })(m = 0.2, s = 0.1))
  expect_identical(environment(counting)$usual, 38 - 3) # the first of each form is not
})

test_that("what is not of the usual form in a loop is R's", {
  p <- c(0.3, 0.4)
  d <- c(a = 1, b = 2)
  k <- 1.5
  same <- function(f) expect_equal(c(suppressWarnings(cl_gradient(f)(p))), unname(f(p)))
  twice <- function(x, sqrt) {
    for (t in 1:2) x <- sqrt(x) * t
    x
  }
  with_cl(engine = "host", {
    same(function(p) {
      for (t in c(TRUE, FALSE)) p <- p[t] * 2 + 1 # all or no elements
      sum(p) + 1
    })
    same(function(p) {
      for (t in 1:2) p <- p[-1] * t + c(1, 2)
      for (t in 1:2) p <- list(f = exp)$f(p / 9) * t
      sum(p)
    })
    same(function(p) {
      `-` <- function(a, b) 3 * a
      for (t in 1:2) p <- p - t * p
      sum(p)
    })
    same(function(p) twice(p[1], function(x) x^3))
    normal <- function(x, m) dnorm(x, m, log = TRUE)
    other <- local({
      dnorm <- function(x, m) x * m
      function(x, m) dnorm(x, m)
    })
    same(function(p) {
      q <- dnorm(p[1] * 3, 2, log = TRUE) # these calls could be copied
      p <- dnorm(p[1] + q, 2)
      normal <- function(x, m) x - m
      for (t in 1:3) p <- normal(p * t, 2) + 1
      for (t in 1:3) p <- other(p, t) + 1
      p
    })
    same(function(p) {
      q <- normal(p[1] * p[1], 2)
      dnorm <- function(x, m, log) x - m
      for (t in 1:3) p <- dnorm(p[1] * p[1], t, log = TRUE) * p
      p[1] + q
    })
    same(function(p) {
      delayedAssign("late", p[1] * 3)
      for (t in 1:2) p <- p * t - late / 2^t
      sum(p)
    })
    same(function(p) {
      for (t in 1:2) q <- d[t] * p[1] + t
      q * nchar(names(q))
    })
    expect_warning(cl_gradient(function(p) {
      for (t in 1:2) p <- p[1] * t + log(k - t)
      p
    })(p), "NaNs produced")
    large <- .Machine$integer.max
    expect_true(is.na(suppressWarnings(cl_gradient(function(p) {
      for (t in 1:2) q <- (large + t) * p[1] # integers overflow
      q
    })(p))))
    expect_error(cl_gradient(function(p) {
      for (t in 1:2) p <- p[1] * not_there + t
      p
    })(p), "at 'p[1] * not_there + t': object 'not_there' not found", fixed = TRUE)
  })
})
