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
  sizes <- diff(c(windows$first - 1, windows$ends))
  a$rows <- if (control$metric == "low-rank" && length(sizes) > 0L) min(256, max(sizes)) else 0
  a$most <- min(control$rank, dimension)
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
  a$positions <- a$gradients <- matrix(0, dimension, 0)
}

# Adds the position of iteration i; TRUE if a window ends with it.
observe <- function(a, i, q, g) {
  if (i < a$first || length(a$ends) == 0L || i > a$ends[length(a$ends)]) return(FALSE)
  if (a$rows > 0) {
    if (is_kept(a, i)) {
      a$positions <- cbind(a$positions, q, deparse.level = 0)
      a$gradients <- cbind(a$gradients, g, deparse.level = 0)
    }
    return(i %in% a$ends)
  }
  a$n <- n <- a$n + 1
  off <- q - a$mean
  a$mean <- a$mean + off / n
  a$squares <- a$squares + if (a$dense) outer(off, (n - 1) / n * off) else off * (q - a$mean)
  i %in% a$ends
}

# Iterations of a window are kept at equal distances, its last one too, at most `rows` of them.
is_kept <- function(a, i) {
  end <- min(a$ends[a$ends >= i])
  first <- max(a$first, a$ends[a$ends < i] + 1)
  (end - i) %% ceiling((end - first + 1) / a$rows) == 0
}

# Adds the positions of another window, the `part`-th of `parts`, counted from 0.
merge_windows <- function(a, b, part, parts) {
  if (a$rows > 0) {
    from <- seq(part + 1, ncol(a$positions), by = parts)
    a$positions[, from] <- b$positions[, from]
    a$gradients[, from] <- b$gradients[, from]
    return()
  }
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
  if (a$rows > 0) return(low_rank_fit(a$positions, a$gradients, a$most))
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

# ---- a metric of low rank ------------------------------------------------------------------------
# L L' with L = D^1/2 (I + U (Lambda^1/2 - I) U'): list(scale = D^1/2, values, vectors). The order
# of operations is that of src/sample/lowrank.c, for equal bits.

low_rank_times <- function(m, x, transposed = FALSE) {
  to <- if (transposed) m$scale * x else x
  t <- numeric(length(m$values))
  for (k in seq_along(x)) t <- t + m$vectors[k, ] * to[k]
  t <- (sqrt(m$values) - 1) * t
  for (i in seq_along(t)) to <- to + m$vectors[, i] * t[i]
  if (transposed) to else to * m$scale
}

# a b', column by column.
outer_sum <- function(a, b) {
  to <- matrix(0, nrow(a), nrow(b))
  for (k in seq_len(ncol(a))) to <- to + outer(a[, k], b[, k])
  to
}

column_sum <- function(x) Reduce(`+`, lapply(seq_len(ncol(x)), function(j) x[, j]), 0)

# Columns made orthonormal, each by two rounds, without those that depend on others.
orthonormal <- function(v) {
  kept <- v[, 0L, drop = FALSE]
  for (j in seq_len(ncol(v))) {
    own <- v[, j]
    before <- sqrt(sum(own * own))
    for (i in rep(seq_len(ncol(kept)), 2L)) own <- own - sum(own * kept[, i]) * kept[, i]
    size <- sqrt(sum(own * own))
    if (size > 1e-8 * before) kept <- cbind(kept, own / size, deparse.level = 0)
  }
  kept
}

# Jacobi's method for a positive definite matrix.
jacobi <- function(a) {
  n <- nrow(a)
  v <- diag(1, n)
  rotated <- function(x, p, q, c, s) {
    list(c * x[, p] - s * x[, q], s * x[, p] + c * x[, q])
  }
  for (sweep in 1:30) {
    again <- FALSE
    for (q in seq_len(n)[-1L]) for (p in seq_len(q - 1L)) {
      pq <- a[p, q]
      if (!isTRUE(abs(pq) > 1e-15 * sqrt(a[p, p] * a[q, q]))) next
      angle <- (a[q, q] - a[p, p]) / (2 * pq)
      tangent <- 1 / (abs(angle) + sqrt(1 + angle * angle))
      if (angle < 0) tangent <- -tangent
      c <- 1 / sqrt(1 + tangent * tangent)
      s <- tangent * c
      a[, c(p, q)] <- unlist(rotated(a, p, q, c, s))
      a[c(p, q), ] <- do.call(rbind, rotated(t(a), p, q, c, s))
      v[, c(p, q)] <- unlist(rotated(v, p, q, c, s))
      again <- TRUE
    }
    if (!again) break
  }
  list(values = diag(a), vectors = v)
}

# The positive definite S with S b S = a.
mean_of <- function(a, b) {
  k <- nrow(b)
  lower <- lower_factor(b)
  e <- jacobi(outer_sum(outer_sum(t(lower), a), t(lower)))
  x <- e$vectors * rep(sqrt(sqrt(e$values)), each = k)
  for (i in rev(seq_len(k))) {
    for (l in seq_len(k - i) + i) x[i, ] <- x[i, ] - lower[l, i] * x[l, ]
    x[i, ] <- x[i, ] / lower[i, i]
  }
  outer_sum(x, x)
}

# Orthonormal vectors near the `columns` leading eigenvectors of x x'.
leading <- function(x, columns) {
  v <- orthonormal(x[, ((seq_len(columns) - 1L) * ncol(x)) %/% columns + 1L, drop = FALSE])
  for (round in 1:6) v <- orthonormal(outer_sum(x, outer_sum(t(v), t(x))))
  v
}

low_rank_fit <- function(x, g, most) {
  n <- ncol(x)
  x <- x - column_sum(x) / n
  g <- g - column_sum(g) / n
  spread <- column_sum(x * x) / (n - 1)
  plain <- (n * spread + 5e-3) / (n + 5)
  value <- sqrt(spread / (column_sum(g * g) / (n - 1)))
  usable <- !is.na(value) & value > 0 & value < 1e8 * plain
  scale <- sqrt(ifelse(usable, value, plain))
  x <- x / scale
  g <- g * scale
  g[!usable, ] <- -x[!usable, ]
  columns <- min(max(most, 32), nrow(x), n %/% 4)
  basis <- if (nrow(x) <= 2 * columns) diag(nrow(x)) else
    orthonormal(cbind(leading(x, columns), leading(g, columns)))
  inside <- function(x) {
    p <- outer_sum(t(basis), t(x))
    (n * (outer_sum(p, p) / (n - 1)) + diag(5e-3, ncol(basis))) / (n + 5)
  }
  e <- jacobi(mean_of(inside(x), inside(g)))
  far <- which(e$values > 2 | e$values > 0 & e$values < 0.5)
  far <- utils::head(far[order(-abs(log(e$values[far])))], most)
  list(scale = scale, values = e$values[far],
       vectors = outer_sum(basis, t(e$vectors[, far, drop = FALSE])))
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
