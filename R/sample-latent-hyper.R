# Marginal densities of the hyperparameters of cl_laplace(random = ), each a sum of the coordinates
# z of the design (R/sample-latent.R).

# The density of sum(a * z): list(x, y), equidistant.
design_marginal <- function(design, a) {
  if (design$kind == "grid") grid_marginal(design, a) else axes_marginal(design$axes, a)
}

# The integral of the interpolated density over the coordinates orthogonal to a.
grid_marginal <- function(design, a) {
  p <- length(a)
  basis <- qr.Q(qr(cbind(a, diag(p))))[, seq_len(p), drop = FALSE]
  basis[, 1L] <- a / sqrt(sum(a^2))
  ends <- apply(crossprod(basis, design$z), 1L, range) + c(-1, 1) * design$step
  axes <- lapply(seq_len(p), function(k) seq(ends[1L, k], ends[2L, k], length.out = 121L))
  log_density <- interpolated_density(design)
  y <- vapply(axes[[1L]], function(t) {
    sum(exp(log_density(basis %*% if (p == 1L) matrix(t) else rbind(t, axes[[2L]]))))
  }, 0)
  list(x = sqrt(sum(a^2)) * axes[[1L]], y = y / (sum(y) * sqrt(sum(a^2)) * diff(axes[[1L]][1:2])))
}

# function(z: points in columns): the log density relative to the mode. Its difference from -z'z / 2
# is interpolated by cubic radial functions and a polynomial of degree 2; -Inf outside of the cells
# of known points.
interpolated_density <- function(design) {
  z <- design$known$z
  p <- nrow(z)
  pairs <- all_pairs(p)
  distance <- function(x) {
    sqrt(pmax(outer(colSums(x^2), colSums(z^2), "+") - 2 * crossprod(x, z), 0))
  }
  polynomial <- polynomial_terms(z, pairs)
  rest <- colSums(z^2) / 2 - pmin(design$known$drop, 3 * grid_fall)
  zero <- matrix(0, ncol(polynomial), ncol(polynomial))
  system <- rbind(cbind(distance(z)^3, polynomial), cbind(t(polynomial), zero))
  by <- qr.coef(qr(system, LAPACK = TRUE), c(rest, zero[, 1L]))
  near <- seq_along(rest)
  function(x) {
    d <- distance(x)
    value <- as.vector(d^3 %*% by[near] + polynomial_terms(x, pairs) %*% by[-near]) -
      colSums(x^2) / 2
    nearest <- d[cbind(seq_len(nrow(d)), max.col(-d, "first"))]
    ifelse(nearest > 0.75 * design$step * sqrt(p), -Inf, value)
  }
}

# The same for coordinates that are taken to be independent, with the profiles along the axes as
# their densities: a convolution on 2^11 points.
axes_marginal <- function(axes, a) {
  parts <- lapply(seq_along(a), function(k) {
    known <- is.finite(axes[[k]]$drop)
    z <- axes[[k]]$z[known]
    rest <- stats::splinefun(z, z^2 / 2 - axes[[k]]$drop[known], "natural")
    fine <- seq(min(z), max(z), length.out = 801L)
    y <- exp(rest(fine) - fine^2 / 2)
    list(x = a[k] * fine, y = y / sum(y))
  })
  mean <- vapply(parts, function(d) sum(d$x * d$y), 0)
  sd <- sqrt(sum(vapply(parts, function(d) sum(d$x^2 * d$y), 0) - mean^2))
  n <- 2048L
  by <- 20 * sd / n
  masses <- 1
  for (k in seq_along(parts)) {
    at <- (parts[[k]]$x - mean[k]) / by + n / 2
    low <- floor(at)
    mass <- numeric(n)
    for (side in 0:1) {
      share <- parts[[k]]$y * (if (side == 0L) 1 - (at - low) else at - low)
      place <- (low + side) %% n + 1
      mass <- mass + as.vector(rowsum_at(share, place, n))
    }
    # moved to the origin, so that centres do not add up
    masses <- masses * stats::fft(mass[(seq_len(n) - 1L + n / 2) %% n + 1L])
  }
  y <- pmax(Re(stats::fft(masses, inverse = TRUE))[(seq_len(n) - 1L + n / 2) %% n + 1L], 0)
  keep <- y > 1e-9 * max(y)
  keep <- min(which(keep)):max(which(keep))
  keep <- keep[seq(1, length(keep), by = 4)]
  x <- sum(mean) + (keep - 1 - n / 2) * by
  list(x = x, y = y[keep] / (sum(y[keep]) * diff(x[1:2])))
}

rowsum_at <- function(x, at, n) {
  result <- numeric(n)
  sums <- rowsum(x, at)
  result[as.integer(rownames(sums))] <- sums
  result
}
