# The field of cl_laplace(random = ) given theta, at each point of the design: the normal
# distribution at its mode, whose means and skewness are corrected by third derivatives, as in the
# simplified Laplace approximation of Rue, Martino and Chopin (2009, section 3.2.3).
#
# With the unit vector v = H^-1 e_i / sd_i, along which the others follow x_i, and the third
# derivatives T of the log density, the density of s = (x_i - mode) / sd_i is proportional to
#   exp(-s^2 / 2 + g1 s + g3 s^3 / 6),  g1 = (tr(H^-1 T[v]) - g3) / 2,  g3 = T[v, v, v],
# as log(det(H)) without row i changes along v by the first of both parts of g1. To first order its
# mean is g1 + g3 / 2 = tr(H^-1 T[v]) / 2, its third cumulant g3. So the means of all elements are
# those of the mode less H^-1 d / 2, with the gradient d of log(det(H)): one solution for all.

# list(mean, sd, skew, each a matrix: element x point).
latent_components <- function(m, o, design) {
  count <- length(design$weight)
  n <- length(o$random)
  mean <- sd <- matrix(0, n, count)
  skew <- vector("list", count)
  exact <- skew_points(n, design$weight)
  for (k in seq_len(count)) {
    o$inner <- design$x[, k]
    mode <- require_mode(o, design$theta[, k], "init")
    factor <- mode$step$factor
    mean[, k] <- mode$z[o$random] -
      effects_solve(o, factor, effects_third(o, mode)[o$random]) / 2
    sd[, k] <- sqrt(effects_variances(o, factor))
    if (k %in% exact) skew[[k]] <- latent_skewness(m, o, mode, sd[, k])
  }
  for (k in setdiff(seq_len(count), exact)) {
    far <- colSums((design$z[, exact, drop = FALSE] - design$z[, k])^2)
    skew[[k]] <- if (length(exact) == 0L) numeric(n) else skew[[exact[which.min(far)]]]
  }
  list(mean = mean, sd = sd, skew = matrix(unlist(skew), n))
}

most_skewed <- 2e4 # gradients for the skewness, two for each element of the field and each point

# The points at which the skewness is computed: those of the largest weights that are affordable,
# one at least, none for a very large field.
skew_points <- function(n, weight) {
  if (2 * n > most_skewed) return(integer())
  utils::head(order(-weight), max(1, most_skewed %/% (2 * n)))
}

# g3 of each element, by differences of the gradient along v.
latent_skewness <- function(m, o, mode, sd) {
  h <- 0.1
  n <- length(sd)
  slope <- -mode$slope[o$random]
  unlist(lapply(split(seq_len(n), ceiling(seq_len(n) / 64)), function(some) {
    unit <- matrix(0, n, length(some))
    unit[cbind(some, seq_along(some))] <- 1 / sd[some]
    v <- effects_solve(o, mode$step$factor, unit)
    along <- function(step) {
      z <- matrix(mode$z, length(mode$z), length(some))
      z[o$random, ] <- z[o$random, ] + step * v
      colSums(v * m$many(z)[1L + o$random, , drop = FALSE])
    }
    g <- (along(h) + along(-h) - 2 * colSums(v * slope)) / h^2
    ifelse(is.finite(g), g, 0)
  }), use.names = FALSE)
}

# ---- skew normal distributions -------------------------------------------------------------------

# The density of x under the skew normal distribution of this mean, sd and skewness, limited to
# what such a distribution can have.
skew_normal_density <- function(x, mean, sd, skew) {
  p <- skew_normal_parts(skew)
  t <- ((x - mean) / sd - p$shift) / p$scale
  2 * stats::dnorm(t) * stats::pnorm(p$slant * t) / (sd * p$scale)
}

# The standardised distribution is shift + scale times that with the density
# 2 dnorm(t) pnorm(slant t).
skew_normal_parts <- function(skew) {
  size <- (pmin(abs(skew), 0.95) * 2 / (4 - pi))^(2 / 3)
  delta <- sign(skew) * sqrt(pi / 2 * size / (1 + size))
  scale <- 1 / sqrt(1 - 2 * delta^2 / pi)
  list(slant = delta / sqrt(1 - delta^2), scale = scale, shift = -scale * delta * sqrt(2 / pi))
}

# The marginal density of an element of the field, a mixture over the design: list(x, y).
field_density <- function(mean, sd, skew, weight, n = 161L) {
  some <- weight > 1e-5 * max(weight)
  centre <- sum(weight * mean)
  spread <- sqrt(sum(weight * (sd^2 + (mean - centre)^2)))
  ends <- range(pmax(pmin(c(mean - 5 * sd, mean + 5 * sd)[c(some, some)], centre + 8 * spread),
                     centre - 8 * spread))
  x <- seq(ends[1L], ends[2L], length.out = n)
  y <- 0
  for (k in which(some)) y <- y + weight[k] * skew_normal_density(x, mean[k], sd[k], skew[k])
  list(x = x, y = y)
}

# Quantiles of a density on equidistant points, and its mode, by a spline of its logarithm.
density_quantiles <- function(d, probs) {
  fine <- finer_density(d)
  total <- cumsum(fine$y)
  total <- (total - fine$y / 2) / total[length(total)]
  keep <- !duplicated(total)
  stats::approx(total[keep], fine$x[keep], probs, rule = 2)$y
}

marginal_mode <- function(d) {
  fine <- finer_density(d)
  fine$x[which.max(fine$y)]
}

finer_density <- function(d, n = 1601L) {
  keep <- d$y > 1e-12 * max(d$y)
  x <- d$x[keep]
  fine <- seq(x[1L], x[length(x)], length.out = n)
  list(x = fine, y = exp(stats::splinefun(x, log(d$y[keep] / max(d$y)), "natural")(fine)))
}
