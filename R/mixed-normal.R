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
  list(model = model, rotation = rotation, unit = unit, q = q, y = left / unit, reml = reml,
       p = ncol(x), response = y,
       gram = mixed_gram(model, further = cbind(q, left / unit)),
       constant = (model$n - reml * ncol(x)) * (log(2 * pi) + 2 * log(unit)) -
         sum(log(as.double(w))) + 2 * reml * sum(log(abs(diag(qr.R(rotation))))))
}

# The profiled deviance (or REML criterion) at theta: list(value, f: the factor, pwrss: the
# penalised residual sum of squares in units of unit^2).
normal_deviance <- function(problem, theta) {
  model <- problem$model
  f <- mixed_factor(model, problem$gram, theta_lambda(model, theta))
  if (is.null(f)) return(list(value = Inf))
  m <- nrow(f$r)
  pwrss <- f$r[m, m]^2
  df <- model$n - problem$reml * problem$p
  value <- f$log_det + df * (1 + log(pwrss / df)) + problem$constant
  if (problem$reml) value <- value + 2 * sum(log(diag(f$r)[model$dense + seq_len(problem$p)]))
  list(value = value, f = f, pwrss = pwrss)
}

# Effects u, and the fixed effects in the basis, at the factor f.
normal_effects <- function(problem, f) {
  m <- nrow(f$r)
  rest <- if (m > 1L) backsolve(f$r, f$r[-m, m], m - 1L) else numeric()
  u <- mixed_back(problem$model, f, lapply(f$p, function(p) p[, m]), rest)
  list(u = u, b = rest[problem$model$dense + seq_len(problem$p)])
}

# `scale`: minus the factor of the derivative of pwrss.
normal_slope <- function(problem, at, scale = -(problem$model$n - problem$reml * problem$p) /
                           at$pwrss) {
  model <- problem$model
  f <- at$f
  effects <- normal_effects(problem, f)
  left <- problem$y - as.vector(problem$q %*% effects$b) - random_part(model, f$lambda, effects$u)
  g <- determinant_slopes(model, problem$gram, f, problem$p * problem$reml)
  if (is.null(g)) g <- inverse_rows(model, f, if (problem$reml) problem$q)
  2 * theta_slope(model, g, NULL, lapply(random_sums(model, left), `*`, scale), effects$u)
}
