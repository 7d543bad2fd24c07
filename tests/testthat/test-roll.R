# Loops of recorded functions, rolled (src/program/roll*.c), against the operations as they were
# recorded. STATCL_ROLL_SEED moves the random programs.

facts_of <- function(model) .Call(statcl:::r_program_facts, environment(model)$program)
operations_left <- function(model) facts_of(model)[["operations"]]

expect_rolled <- function(f, ..., most, tol = 1e-11) {
  model <- cl_gradient(f)
  found <- model(...)
  recorded <- cl_gradient(f, roll = FALSE)
  expect_equal(found, recorded(...), tolerance = tol)
  expect_lte(operations_left(model), most)
  invisible(list(model = model, recorded = recorded))
}

test_that("random loops have the values and gradients of what was recorded", {
  seeds <- full_or_quick(1000L, 40L)
  first <- as.integer(Sys.getenv("STATCL_ROLL_SEED", "0"))
  with_cl(engine = "host", {
    errors <- vapply(first + seq_len(seeds), function(seed) {
      set.seed(seed)
      f <- loop_function(random_loop(), roll_data(sample(c(10L, 20L, 31L), 1L)))
      roll_error(f, list(a = rnorm(5), b = 0.3, s = -0.2))
    }, 0)
  })
  expect_equal(which(is.na(errors) | errors > 1e-9), integer())
})

test_that("loops that one check refuses", {
  set.seed(2)
  with_cl(engine = "host", for (lines in special_loops) {
    f <- loop_function(lines, roll_data(31L))
    expect_lt(roll_error(f, list(a = rnorm(5), b = 0.3, s = -0.2)), 1e-11)
  })
})

test_that("random loops on a device", {
  on_device(for (seed in seq_len(full_or_quick(12L, 2L))) {
    set.seed(seed)
    f <- loop_function(random_loop(), roll_data(12L))
    expect_lt(roll_error(f, list(a = rnorm(5), b = 0.3, s = -0.2)), 1e-9)
  })
})

set.seed(1)
n <- 60L
y <- rnorm(n)
g <- sample(7L, n, replace = TRUE)

test_that("independent iterations become operations on vectors", {
  with_cl(engine = "host", {
    expect_rolled(function(a, s) {
      total <- 0
      for (i in 1:n) total <- total + dnorm(y[i], a[g[i]], exp(s), log = TRUE)
      total
    }, a = (1:7) / 3, s = 0.2, most = 8)
    expect_rolled(function(a) sum(sapply(1:n, function(i) tanh(a[g[i]] * y[i]))), a = (1:7) / 3,
                  most = 2)
    # a vector filled by element, and a matrix by row
    expect_rolled(function(a) {
      w <- numeric(n)
      m <- matrix(0, n, 3)
      for (i in 1:n) {
        w[i] <- exp(a[1] * y[i])
        for (k in 1:3) m[i, k] <- a[k] * w[i]
      }
      sum(cumsum(w)) + sum(m %*% a)
    }, a = c(0.1, 0.2, -0.4), most = 12)
    # groups in groups
    expect_rolled(function(a, b) {
      total <- 0
      for (i in 1:7) for (j in 1:9) total <- total + tanh(exp(a[i]) * (i * j - b[j]))
      total
    }, a = (1:7) / 3, b = (1:9) / 5, most = 10)
  })
})

test_that("iterations that need those before them become scans", {
  with_cl(engine = "host", {
    expect_rolled(function(mu, phi, theta) {
      e <- numeric(n)
      e[1] <- y[1] - mu
      for (t in 2:n) e[t] <- y[t] - mu - phi * y[t - 1] - theta * e[t - 1]
      sum(dnorm(e, log = TRUE))
    }, mu = 0.1, phi = 0.3, theta = 0.2, most = 12)
    # two iterations ago, and a state of two numbers
    expect_rolled(function(a, b) {
      x <- c(b, 0.5, numeric(n))
      for (t in 3:n) x[t] <- tanh(a * x[t - 2] + 0.3 * x[t - 1]) + y[t]
      s <- c(1, b)
      for (t in 1:n) s <- c(0.5 * s[1] + a * s[2], tanh(s[1] * y[t]))
      sum(x^2) + s[1]
    }, a = 0.4, b = 0.2, most = 12)
    # vectors of the step
    trans <- matrix(c(0.7, 0.3, 0.2, 0.8), 2, byrow = TRUE)
    hmm <- expect_rolled(function(mu, w) {
      move <- log(trans) + w
      l <- matrix(0, n, 2)
      for (k in 1:2) l[1, k] <- dnorm(y[1], mu[k], log = TRUE)
      for (t in 2:n) {
        for (k in 1:2) {
          l[t, k] <- cl_log_sum_exp(l[t - 1, ] + move[, k]) + dnorm(y[t], mu[k], log = TRUE)
        }
      }
      cl_log_sum_exp(l[n, ])
    }, mu = c(-1, 1), w = 0.1, most = 40)
    points <- list(mu = cbind(c(-1, 1), c(0, 0.5)), w = c(0.1, 0.2))
    expect_equal(do.call(cl_map_gradient, c(list(hmm$model), points)),
                 do.call(cl_map_gradient, c(list(hmm$recorded), points)), tolerance = 1e-11)
    expect_equal(cl_hessian(hmm$model)(mu = c(-1, 1), w = 0.1),
                 cl_hessian(hmm$recorded)(mu = c(-1, 1), w = 0.1), tolerance = 1e-9)
  })
})

test_that("what is special about the first iteration leaves no operations of its own", {
  with_cl(engine = "host", {
    expect_rolled(function(b, m) { # a first state that is a number
      s <- numeric(n)
      s[1] <- 1.2
      for (t in 2:n) s[t] <- sqrt(0.1 + b * (y[t - 1] - m)^2 + b * s[t - 1]^2)
      sum(s * y)
    }, b = 0.4, m = 0.1, most = 5)
    # the step computes log(0) behind the last iteration
    w <- c(y[-n], 0)
    expect_rolled(function(b) {
      s <- numeric(n)
      s[1] <- 1.2
      for (t in 2:n) s[t] <- w[t]^2 * (b + log(s[t - 1])^2)
      sum(s)
    }, b = 0.4, most = 1)
    # the likelihood of the first state
    expect_rolled(function(b, z) {
      u <- exp(z)
      total <- 0
      for (t in 1:n) {
        total <- total + dnorm(y[t], log(u), exp(b), log = TRUE)
        u <- u + 0.1 * (b - u)
      }
      total
    }, b = 0.4, z = 0.3, most = 9)
    # it cannot wait if the loop needs it
    expect_rolled(function(b, z) {
      u <- exp(z)
      v <- log(u)
      total <- v
      for (t in 1:n) {
        u <- 1.5 + tanh(u * v + b)
        total <- total + y[t] * log(u)
      }
      total
    }, b = 0.4, z = 0.3, most = 5)
  })
})

test_that("short sums of few patterns are computed once", {
  with_cl(engine = "host", {
    seen <- matrix(sample(c(FALSE, TRUE), 5 * n, replace = TRUE, prob = c(0.8, 0.2)), n)
    expect_rolled(function(p) {
      total <- 0
      for (i in 1:n) {
        l <- 0
        for (k in 1:5) l <- l + if (seen[i, k]) log(p[1]) else log(p[2])
        total <- total + tanh(l) * y[i]
      }
      total
    }, p = c(0.3, 0.6), most = 4)
  })
})

test_that("what is known when the program is made is not computed in each run", {
  with_cl(engine = "host", {
    seen <- matrix(sample(0:1, 4 * n, replace = TRUE, prob = c(0.8, 0.2)), n)
    model <- expect_rolled(function(p, w) { # the numbers of equal rows are weights
      total <- 0
      for (i in 1:n) {
        l <- 0
        for (k in 1:4) l <- l + if (seen[i, k] > 0) log(p[1]) else log(p[2])
        total <- total + log(w) + l
      }
      total
    }, p = c(0.3, 0.6), w = 0.2, most = 12)$model
    expect_identical(facts_of(model)[["calls"]], 1) # one gather, and no scatter for its derivative
  })
})

test_that("first values and results are one vector without copies", {
  steps <- function(model) facts_of(model)[["kernels"]] + facts_of(model)[["calls"]]
  with_cl(engine = "host", {
    loop <- expect_rolled(function(b, s) {
      u <- exp(b)
      v <- exp(s)
      total <- 0
      for (i in 1:n) {
        total <- total + log(u) * y[i] + log(v) * y[i]^2
        d <- 0.5 * u + 0.1 * tanh(v)
        v <- 0.6 * v + 0.1 / u
        u <- d
      }
      total
    }, b = 0.3, s = 0.6, most = 10)$model
    vectors <- cl_gradient(function(b, s) {
      path <- cl_scan(function(p) {
        list(state = c(0.5 * p[1] + 0.1 * tanh(p[2]), 0.6 * p[2] + 0.1 / p[1]), out = p)
      }, exp(c(b, s)), length.out = n)$out
      sum(log(path[, 1]) * y) + sum(log(path[, 2]) * y^2)
    })
    expect_equal(loop(b = 0.3, s = 0.6), vectors(b = 0.3, s = 0.6))
    expect_lte(steps(loop), steps(vectors))
  })
})

test_that("equal inputs of a step are one, and inputs are added before the state", {
  of <- function(twice) {
    expect_rolled(function(mu, w) {
      move <- log(matrix(c(0.7, 0.3, 0.2, 0.8), 2)) + w
      l <- matrix(0, n, 2)
      acc <- numeric(2)
      for (t in 2:n) for (k in 1:2) {
        d <- dnorm(y[t], mu[k], log = TRUE)
        for (j in 1:2) {
          if (twice && j == 2) d <- dnorm(y[t], mu[k], log = TRUE)
          acc[j] <- l[t - 1, j] + move[j, k] + d
        }
        l[t, k] <- cl_log_sum_exp(acc)
      }
      cl_log_sum_exp(l[n, ])
    }, mu = c(-1, 1), w = 0.1, most = 40)$model
  }
  elements <- function(twice) facts_of(of(twice))[["elements"]]
  added <- function(terms) {
    expect_rolled(function(b, s) {
      h <- 0
      for (i in 1:n) {
        h <- if (terms == 2L) tanh(h + s * y[i] + b + exp(b * y[i])) else tanh(h + s * y[i] + b)
      }
      h
    }, b = 0.3, s = 0.2, most = 5)$model
  }
  with_cl(engine = "host", {
    expect_lt(elements(TRUE), 1.25 * elements(FALSE))
    # two products, an exponential and a sum for all steps, and no further input of the steps
    expect_lt(facts_of(added(2L))[["elements"]] - facts_of(added(1L))[["elements"]], 3.5 * n)
  })
})

test_that("what differs is left alone", {
  q <- c(1L, vapply(2:n, function(i) sample(i - 1L, 1L), 0L))
  operations <- function(f, ...) {
    model <- expect_rolled(f, ..., most = Inf)$model
    sum(environment(model)$nodes$kind == "apply") - operations_left(model)
  }
  with_cl(engine = "host", {
    chain <- function(a) {
      for (i in 1:n) a <- if (y[i] > 0) tanh(a) else exp(-a * y[i])
      a
    }
    expect_identical(operations(chain, a = 0.2), 0)
    tree <- function(a) { # any earlier element
      w <- rep(a, n)
      for (i in 2:n) w[i] <- tanh(w[q[i]] + y[i])
      w[n]
    }
    expect_rolled(tree, a = 0.2, most = Inf)
    few <- function(a) exp(a[1]) + exp(a[2]) + exp(a[3]) + tanh(a[4]) * a[5]
    expect_identical(operations(few, a = 1:5 / 7), 0)
  })
})

test_that("equal elements of an extreme share its derivative", {
  with_cl(engine = "host", {
    f <- function(a) {
      total <- 0
      for (i in 1:n) total <- total + max(c(a[1], a[2], a[g[i]])) + min(a[1:2] * y[i])
      total
    }
    expect_rolled(f, a = rep(0.5, 7), most = Inf)
  })
})

test_that("data of iterations can be exchanged", {
  index <- 10:1
  b <- (1:10) / 10
  z <- matrix(rnorm(100), 10)
  model <- cl_gradient(function(b) {
    w <- b[index]
    total <- 0
    for (i in 1:10) total <- total + tanh(sum(z[i, ] * b)) * w[i]
    total
  })
  plain <- function(z, index) sum(tanh(z %*% b) * b[index])
  with_cl(engine = "host", {
    expect_equal(c(model(b)), plain(z, index))
    update(model, z = z / 2)
    expect_equal(c(model(b)), plain(z / 2, index))
    update(model, index = c(1:10))
    expect_equal(c(model(b)), plain(z / 2, 1:10))
  })
})

test_that("missing data of iterations stay missing", {
  w <- c(y[1:11], NA)
  with_cl(engine = "host", {
    f <- function(a, b) {
      total <- 0
      for (i in 1:12) total <- total + sum(tanh(matrix(a, 2) %*% c(w[i], b)))
      total
    }
    expect_identical(c(cl_gradient(f)(a = 1:4 / 5, b = 0.3)), NA_real_)
  })
})

test_that("print() says how many operations are left", {
  with_cl(engine = "host", {
    f <- function(a) {
      for (i in 1:20) a <- 0.5 * a + tanh(a * i)
      a
    }
    model <- cl_gradient(f)
    model(a = 0.3)
    expect_output(print(model), "of 80 elementwise operations recorded, 0 are left")
    recorded <- cl_gradient(f, roll = FALSE)
    recorded(a = 0.3)
    expect_false(any(grepl("rolled", capture.output(print(recorded)))))
  })
})
