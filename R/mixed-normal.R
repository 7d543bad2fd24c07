# Linear models with random effects: the profiled deviance by penalised least squares, as in Bates,
# Maechler, Bolker and Walker (2015), which is exact.

# `x`: n x p of full rank, `y` without the offset, `w`: weights or NULL. The fixed effects are in an
# orthonormal basis Q of x, and y is replaced by its least-squares residuals, in units of their
# size.
normal_problem <- function(designs, x, y, w, reml) {
  root <- if (!is.null(w)) sqrt(w)
  if (!is.null(root)) {
    x <- x * root
    y <- y * root
    designs <- lapply(designs, function(d) {
      d$x <- d$x * root
      d
    })
  }
  model <- mixed_model(designs)
  rotation <- qr(x)
  left <- qr.resid(rotation, y)
  unit <- sqrt(mean(left^2))
  if (!(unit > 1e-14 * sqrt(mean(y^2)))) {
    abort_argument("formula", "the fixed effects fit the response without error")
  }
  q <- qr.Q(rotation)
  gram <- mixed_gram(model, further = cbind(q, left / unit))
  list(model = model, rotation = rotation, unit = unit, q = q, y = left / unit, reml = reml,
       p = ncol(x), response = y, gram = gram, small = small_problem(model, gram),
       constant = (model$n - reml * ncol(x)) * (log(2 * pi) + 2 * log(unit)) -
         sum(log(as.double(w))) + 2 * reml * sum(log(abs(diag(qr.R(rotation))))))
}

# The arguments of r_profile() that depend on the data; NULL where its plain loops would take longer
# than R's calls and the products of a BLAS: from about 1e6 products on (`Rscript bench/mixed.R
# paths`).
most_plain <- 1e6
small_problem <- function(model, gram) {
  one <- model$blocks[[1L]]
  m <- ncol(gram$rest)
  if (model$sparse || (as.double(one$L) * one$K + m) * m^2 > most_plain) return(NULL)
  cross <- aperm(array(unlist(gram$cross), c(one$L, m, one$K)), c(2L, 3L, 1L))
  list(list(t(gram$first), cross, gram$rest), model$at,
       vapply(model$blocks, `[[`, 0L, "L"), vapply(model$blocks, `[[`, 0L, "K"))
}

small_profile <- function(small, theta, weight = NULL) {
  .Call(r_profile, small[[1L]], small[[2L]], small[[3L]], small[[4L]], theta, weight)
}

# The profiled deviance (or REML criterion) at theta: list(value, pwrss: the penalised residual sum
# of squares in units of unit^2, f: the factor, or of a small problem theta).
normal_deviance <- function(problem, theta) {
  model <- problem$model
  if (is.null(problem$small)) {
    f <- normal_factor(problem, theta)
    if (is.null(f)) return(list(value = Inf))
    ends <- diag(f$r)[model$dense + seq_len(problem$p + 1L)]
    at <- list(log_det = f$log_det, f = f)
  } else {
    ends <- small_profile(problem$small, theta)
    if (is.null(ends)) return(list(value = Inf))
    at <- list(log_det = ends[1L], theta = theta)
    ends <- ends[-1L]
  }
  at$pwrss <- ends[problem$p + 1L]^2
  df <- model$n - problem$reml * problem$p
  at$value <- at$log_det + df * (1 + log(at$pwrss / df)) + problem$constant
  if (problem$reml) at$value <- at$value + 2 * sum(log(ends[seq_len(problem$p)]))
  at
}

normal_factor <- function(problem, theta) {
  mixed_factor(problem$model, problem$gram, theta_lambda(problem$model, theta))
}

# Effects u, and the fixed effects in the basis, at the factor f.
normal_effects <- function(problem, f) {
  m <- nrow(f$r)
  rest <- if (m > 1L) backsolve(f$r, f$r[-m, m], m - 1L) else numeric()
  u <- mixed_back(problem$model, f, lapply(f$p, function(p) p[, m]), rest)
  list(u = u, b = rest[problem$model$dense + seq_len(problem$p)])
}

# `weight`: the factor of the derivative of log(pwrss).
normal_slope <- function(problem, at, weight = problem$model$n - problem$reml * problem$p) {
  model <- problem$model
  if (!is.null(problem$small)) {
    return(small_profile(problem$small, at$theta,
                         c(rep(as.double(problem$reml), problem$p), weight)))
  }
  f <- at$f
  effects <- normal_effects(problem, f)
  left <- problem$y - as.vector(problem$q %*% effects$b) - random_part(model, f$lambda, effects$u)
  g <- determinant_slopes(model, problem$gram, f, problem$p * problem$reml)
  if (is.null(g)) g <- inverse_rows(model, f, if (problem$reml) problem$q)
  sums <- lapply(random_sums(model, left), `*`, -weight / at$pwrss)
  2 * theta_slope(model, g, NULL, sums, effects$u)
}
