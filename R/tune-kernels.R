# Parameters of kernels (engine/cl/runtime/tune.def): for each of them a call whose time depends on
# it, on device matrices.

kernel_tasks <- function() {
  numbers <- function(m, n) as_cl(matrix(sin(seq_len(m * n)), m, n))
  product <- function(m, n, k) {
    function() {
      a <- numbers(m, k)
      b <- numbers(k, n)
      function() as.matrix(rowSums(cl_matmul(a, b)))
    }
  }
  likelihood <- function(n, p) {
    function() {
      x <- matrix(sin(seq_len(n * p)), n, p)
      f <- cl_likelihood("bernoulli_logit", as.numeric(x[, 1L] > 0.3), x)
      function() {
        value <- f(alpha = 0, beta = numeric(p), gradient = c("alpha", "beta"))
        c(value, unlist(attr(value, "gradient")))
      }
    }
  }
  total <- function() { x <- numbers(4e6, 1); function() sum(x * x) }
  list(gemm_split_groups = product(40, 40, 1e5), gemm_thin_groups = product(2000, 3, 2000),
       gemm_large_groups = product(1500, 1500, 500), gemm_small_cost = product(900, 900, 500),
       gemm_large_cost = product(2000, 2000, 500), gemm_cpu_tiles = product(500, 500, 500),
       integer_products = product(6000, 6000, 6000),
       glm_more_groups = likelihood(1e5, 30), glm_split_groups = likelihood(2e4, 150),
       glm_rows_groups = likelihood(1e5, 10), sum_groups = total, sum_cpu_groups = total)
}

# Tries the permitted values of each parameter of this kind of device. `set(values)` has a device
# use them. `gain`: the time with the default divided by that with the value. A value is chosen if
# two measurements show a gain.
tune_kernels <- function(where, device, budget, tasks = kernel_tasks(), time = least_seconds,
                         set = function(v) .Call(r_tune, where, names(v), unname(v)),
                         now = wall_seconds) {
  own <- tunables()
  kind <- if (device$type == "cpu") 2L else 1L
  use <- which(bitwAnd(as.integer(own$kinds), kind) > 0L & own$name %in% names(tasks))
  on.exit({
    session$settled <- list()
    settle(where)
  })
  spent <- 0
  rows <- NULL
  for (k in use) {
    if (spent > budget) break
    name <- own$name[k]
    run <- with_cl(tasks[[name]](), engine = "device")
    right <- NULL
    values <- unique(c(own$default[k], own$permitted[[k]]))
    # measures the gain of the second of two values again: one measurement may be disturbed
    once_more <- function(pair) {
      start <- now()
      seconds <- vapply(pair, function(value) {
        set(stats::setNames(value, name))
        with_cl(time(run), engine = "device")
      }, 0)
      spent <<- spent + now() - start
      seconds[1L] / seconds[2L]
    }
    tried <- lapply(values, function(value) {
      set(stats::setNames(value, name))
      result <- as.numeric(with_cl(run(), engine = "device"))
      if (is.null(right)) right <<- result
      start <- now()
      seconds <- with_cl(time(run), engine = "device")
      spent <<- spent + now() - start
      data.frame(name = name, value = value, seconds = seconds,
                 agree = agree_closely(right, result), stringsAsFactors = FALSE)
    })
    set(stats::setNames(own$default[k], name))
    tried <- do.call(rbind, tried)
    tried$gain <- tried$seconds[1L] / tried$seconds
    best <- which.max(ifelse(tried$agree, tried$gain, 0))
    gains <- tried$gain[best]
    if (best > 1L && gains >= 1 / 0.95) gains <- min(gains, once_more(tried$value[c(1L, best)]))
    tried$chosen <- seq_len(nrow(tried)) == if (gains >= 1 / 0.95) best else 1L
    rows <- rbind(rows, tried)
  }
  rows
}
