# Vectors that a function fills element by element share their lists of elements
# (src/r/trace_version.c): vectors with several names, of which some are filled further, have the
# values that R gives them.

test_that("filled vectors keep their values under other names", {
  fill <- function(n, steps) {
    force(n)
    function(p, w) {
      v <- list(numeric(n) + 0.5, p, c(p[1:2], rep(1, n - 2)), 2 * p)
      total <- 0
      for (s in steps) {
        x <- old <- v[[s$from]]
        if (s$form == 1) x[s$i] <- w[1] * v[[s$to]][s$j]
        if (s$form == 2) x[s$i] <- v[[s$to]][s$j]
        if (s$form > 2) x[s$i] <- 0.5 * x[s$j] + w[2]
        total <- total + old[s$i] * x[s$i] / length(steps)
        v[[s$to]] <- x
        if (s$form == 4) v[[s$from]] <- old
      }
      total + sum(v[[1]] * seq_len(n)) + sum(v[[2]]) + sum(v[[3]]^2) + v[[4]][n]
    }
  }
  with_cl(engine = "host", for (seed in seq_len(full_or_quick(200L, 30L))) {
    set.seed(seed)
    n <- sample(c(3L, 64L, 65L, 100L), 1L)
    steps <- replicate(sample(200L, 1L), simplify = FALSE, {
      list(from = sample(4L, 1L), to = sample(4L, 1L), i = sample(n, 1L), j = sample(n, 1L),
           form = sample(4L, 1L))
    })
    f <- fill(n, steps)
    p <- rnorm(n)
    w <- c(0.7, 0.2)
    found <- cl_gradient(f)(p, w)
    h <- 1e-5
    slope <- (f(p, w + c(h, 0)) - f(p, w - c(h, 0))) / (2 * h)
    expect_equal(c(found), f(p, w), tolerance = 1e-10)
    expect_equal(attr(found, "gradient")$w[1], slope, tolerance = 1e-6)
  })
})
