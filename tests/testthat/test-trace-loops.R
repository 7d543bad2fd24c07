# What a loop assigns is recorded by one call if it is arithmetic (R/trace-loops.R): it has the
# values of R, and the nodes of the same code outside of loops.

random_formula <- function(depth) {
  leaves <- list(quote(p[t]), quote(p[t - 1L]), quote(x[t - 1]), quote(q), quote(y[t]),
                 quote(m[t, 2L]), quote(a[2, t]), quote(k), quote(t), quote(late), 2, 3L)
  if (depth == 0L) return(sample(leaves, 1L)[[1L]])
  forms <- list(quote(A + B), quote(A - B), quote(A * B), quote(A / (2 + B^2)), quote(-A),
                quote(exp(-A^2)), quote(log(3 + (A)^2)), quote(sqrt(1 + A^2) * B), quote((B - A)),
                quote((2 + A^2)^(B / (3 + B^2))), quote((2 + k^2)^1.5 * A - 2^y[t]))
  do.call(substitute, list(sample(forms, 1L)[[1L]],
                           list(A = random_formula(depth - 1L),
                                B = random_formula(sample.int(depth, 1L) - 1L))))
}

# A function with the formula in its loop, and one whose loop calls a function with it.
loop_and_steps <- function(formula) {
  home <- list2env(list(n = 6L, y = c(0.3, -1.2, 0.8, 1.5, 0.1, 2), k = 2L,
                        m = matrix(seq(-1, 1, length.out = 12L), 6L)), parent = baseenv())
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

test_that("what is not of the usual form in a loop is R's", {
  p <- c(0.3, 0.4)
  d <- c(a = 1, b = 2)
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
      sum(p)
    })
    same(function(p) {
      `-` <- function(a, b) 3 * a
      for (t in 1:2) p <- p - t * p
      sum(p)
    })
    same(function(p) twice(p[1], function(x) x^3))
    same(function(p) {
      delayedAssign("late", p[1] * 3)
      for (t in 1:2) p <- p * t - late / 2^t
      sum(p)
    })
    same(function(p) {
      for (t in 1:2) q <- d[t] * p[1] + t
      q * nchar(names(q))
    })
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
