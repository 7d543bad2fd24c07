# What cl_tune() measures: for each operation sizes in the unit of its threshold, shapes, and a
# function without arguments for a size and a shape.

tune_tasks <- function() {
  spd <- function(n) diag(n, n) + 0.5^abs(outer(seq_len(n), seq_len(n), "-"))
  lower <- function(n) t(chol(spd(n)))
  # data without R's random numbers, whose state belongs to the user
  numbers <- function(m, n) matrix(sin(seq_len(m * n)), m, n)
  rows <- 2^(5:13)
  task <- function(make, sizes = rows, shapes = list(square = 1)) {
    list(sizes = sizes, shapes = shapes, make = make)
  }
  density <- function(columns, rows, sizes) {
    task(function(size, p) {
      x <- numbers(round(rows(size, p)), p)
      y <- as.numeric(x[, 1L] > 0.3)
      function() {
        value <- cl_glm_lpdf("bernoulli_logit", y, x, 0, numeric(p), gradient = c("alpha", "beta"))
        c(value, attr(value, "gradient"))
      }
    }, sizes = sizes, shapes = columns)
  }
  # of m = n = s k/r: a harmonic mean of s if k is the third
  sides <- function(s, r) pmax(1L, as.integer(round(s / (3 / (2 + 1 / r)) * c(1, r))))
  list(
    chol = task(function(n, shape) { a <- spd(n); function() cl_chol(a) }),
    chol_adjoint = task(function(n, shape) { l <- lower(n); function() cl_chol_adjoint(l, l) }),
    matmul = task(function(s, r) {
      n <- sides(s, r)
      a <- numbers(n[1L], n[2L])
      b <- numbers(n[2L], n[1L])
      function() cl_matmul(a, b)
    }, shapes = list(square = 1, long = 4)),
    tri_solve = task(function(s, r) {
      n <- sides(s, r)
      l <- lower(n[1L])
      b <- numbers(n[1L], n[2L])
      function() cl_tri_solve(l, b)
    }, shapes = list(square = 1, narrow = 0.25)),
    tri_inverse = task(function(n, shape) { l <- lower(n); function() cl_tri_inverse(l) }),
    arith = task(function(size, shape) {
      x <- sin(seq_len(size))
      function() cl_map(function(x) exp(-x * x) + x, x)
    }, sizes = 4^(6:12)),
    glm = density(list("5 columns" = 5, "20 columns" = 20), function(rows, p) rows, 4^(4:10)),
    glm_wide = density(list("50 columns" = 50, "200 columns" = 200), `/`, 4^(5:12)),
    glm_fit = task(function(size, p) {
      n <- ceiling(size / (p + 25))
      x <- matrix(sin(0.37 * seq_len(n * p)^2), n, p) # columns that are independent
      y <- as.numeric(x[, 1L] > sin(seq_len(n)))
      function() coef(cl_glm(x, y, intercept = FALSE))
    }, sizes = 4^(8:12), shapes = list("5 columns" = 5, "50 columns" = 50)),
    likelihood = task(function(size, p) {
      x <- numbers(ceiling(size / (p + 25)), p)
      at <- list()
      function() {
        engine <- session$engine
        if (is.null(at[[engine]])) {
          at[[engine]] <<- cl_likelihood("bernoulli_logit", as.numeric(x[, 1L] > 0.3), x)
        }
        value <- at[[engine]](0, numeric(p))
        c(value, unlist(attr(value, "gradient")))
      }
    }, sizes = 4^(5:12), shapes = list("10 columns" = 10, "100 columns" = 100)),
    covariance = task(function(n, shape) {
      x <- numbers(n, 3L)
      function() cl_cov(x, kernel = k_exp_quad())
    }),
    gp = task(function(n, shape) {
      x <- numbers(n, 2L)
      y <- cos(seq_len(n))
      at <- list()
      function() {
        engine <- session$engine
        if (is.null(at[[engine]])) at[[engine]] <<- cl_gp_likelihood(y, x, k_exp_quad())
        value <- at[[engine]](c(1, 1, 0.5))
        c(value, attr(value, "gradient"))
      }
    }, sizes = 2^(4:12)),
    batch = task(function(size, n) {
      a <- array(spd(n), c(n, n, max(1, round(size / n^3))))
      function() cl_batch_inverse(a)
    }, sizes = 4^(8:15), shapes = list("order 4" = 4, "order 32" = 32)),
    program = task(function(size, shape) {
      n <- ceiling(size * 800) # in program_cost() the model below has four launches
      x <- numbers(n, 1L)[, 1L]
      at <- list()
      function() {
        engine <- session$engine
        if (is.null(at[[engine]])) {
          at[[engine]] <<- cl_gradient(function(a, b, s) {
            sum(stats::dnorm(x, a + b * x, exp(s), log = TRUE))
          })
        }
        value <- at[[engine]](a = 0.1, b = 0.2, s = 0.3)
        c(value, unlist(attr(value, "gradient")))
      }
    }, sizes = 2^(0:10)))
}
