# The reference of helper-sample-chain.R. Warm-up: step size by dual averaging (Hoffman and Gelman,
# 2014, section 3.2), an inverse mass matrix from the variances or the covariance matrix within
# windows that double; and streams of random numbers.

# The iterations (counted from 1) after which a window ends, and the first one that counts: 75
# iterations to find the bulk, windows of 25, 50, 100, ... for the variances, and 50 iterations for
# the last step size. A short warm-up gets 15%, one window, 10%.
adaptation_windows <- function(warmup) {
  if (warmup < 20) return(list(first = Inf, ends = integer()))
  first <- 75
  last <- 50
  size <- 25
  if (first + size + last > warmup) {
    first <- floor(0.15 * warmup)
    last <- floor(0.1 * warmup)
    size <- warmup - first - last
  }
  ends <- first + size
  while (ends[length(ends)] < warmup - last) {
    size <- 2 * size
    end <- ends[length(ends)] + size
    if (end + 2 * size > warmup - last) end <- warmup - last
    ends <- c(ends, end)
  }
  list(first = first + 1, ends = ends)
}

new_adaptation <- function(control, dimension) {
  a <- new.env(parent = emptyenv())
  a$target <- control$adapt_delta
  windows <- adaptation_windows(if (control$metric == "unit") 0 else control$warmup)
  a$dense <- control$metric == "dense"
  a$first <- windows$first
  a$ends <- windows$ends
  clear_moments(a, dimension)
  restart_averaging(a, 1)
  a
}

# Restarts averaging from a step size found by trial, shrunk towards ten times that size, because
# larger steps are cheaper to try. With few iterations left, it is shrunk towards the size itself.
restart_averaging <- function(a, step_size, left = Inf) {
  a$step_size <- step_size
  a$mu <- log(if (left < 25) step_size else 10 * step_size)
  a$count <- 0
  a$error <- 0
  a$average <- 0
}

# The step size for the next iteration, after one with this acceptance statistic.
adapt_step <- function(a, accept) {
  a$count <- count <- a$count + 1
  share <- 1 / (count + 10)
  a$error <- (1 - share) * a$error + share * (a$target - min(1, accept))
  x <- a$mu - a$error * sqrt(count) / 0.05
  share <- count^-0.75
  a$average <- (1 - share) * a$average + share * x
  a$step_size <- exp(x)
}

# The step size after the warm-up.
final_step <- function(a) if (a$count > 0) exp(a$average) else a$step_size

clear_moments <- function(a, dimension) {
  a$n <- 0
  a$mean <- numeric(dimension)
  a$squares <- if (a$dense) matrix(0, dimension, dimension) else numeric(dimension)
}

# Adds the position of iteration i; TRUE if a window ends with it.
observe <- function(a, i, q) {
  if (i < a$first || length(a$ends) == 0L || i > a$ends[length(a$ends)]) return(FALSE)
  a$n <- n <- a$n + 1
  off <- q - a$mean
  a$mean <- a$mean + off / n
  a$squares <- a$squares + if (a$dense) outer(off, (n - 1) / n * off) else off * (q - a$mean)
  i %in% a$ends
}

# Adds the positions of another window.
merge_windows <- function(a, b) {
  n <- a$n + b$n
  off <- b$mean - a$mean
  shift <- a$n * (b$n / n) * off
  a$squares <- a$squares + (b$squares + if (a$dense) outer(off, shift) else shift * off)
  a$mean <- a$mean + b$n / n * off
  a$n <- n
}

# The inverse mass matrix of the window, or its diagonal, shrunk slightly towards 1e-3, so that a
# window without movement does no harm.
window_inverse <- function(a) {
  n <- a$n
  ridge <- if (a$dense) diag(5e-3, length(a$mean)) else 5e-3
  variance <- if (n > 1) a$squares / (n - 1) else a$squares + (ridge > 0)
  (n * variance + ridge) / (n + 5)
}

# ---- a dense metric ------------------------------------------------------------------------------

# The lower Cholesky factor, column by column.
lower_factor <- function(x) {
  d <- nrow(x)
  for (k in seq_len(d)) {
    x[k, k] <- sqrt(x[k, k])
    below <- seq_len(d - k) + k
    x[below, k] <- x[below, k] / x[k, k]
    for (j in below) x[j:d, j] <- x[j:d, j] - x[j, k] * x[j:d, k]
  }
  x * lower.tri(x, diag = TRUE)
}

# L x, or L' x, column by column.
factor_times <- function(factor, x, transposed = FALSE) {
  if (transposed) factor <- t(factor)
  product <- numeric(length(x))
  for (k in seq_along(x)) product <- product + factor[, k] * x[k]
  product
}

# ---- random numbers -----------------------------------------------------------------------------

# A separate stream of random numbers for each chain, which leaves the state of the session's
# generator unchanged. So chains run one after another, in lockstep or in workers give the same
# draws.
new_stream <- function(state) {
  home <- globalenv()
  swapped <- function(draw, n) {
    old <- get(".Random.seed", envir = home, inherits = FALSE)
    assign(".Random.seed", state, envir = home)
    on.exit(assign(".Random.seed", old, envir = home))
    result <- draw(n)
    state <<- get(".Random.seed", envir = home, inherits = FALSE)
    result
  }
  buffer <- numeric() # buffered uniform numbers
  used <- 0L
  uniform <- function(n) {
    if (used + n > length(buffer)) {
      buffer <<- swapped(stats::runif, max(n, 128L))
      used <<- 0L
    }
    used <<- used + n
    buffer[(used - n + 1L):used]
  }
  rest <- function() buffer[used + seq_len(length(buffer) - used)]
  list(normal = function(n) swapped(stats::rnorm, n), uniform = uniform,
       state = function() list(state, rest()))
}
