# The columns in which a fit is computed. With nearly collinear columns, cross-products lose the
# digits in which the columns differ. Where that matters, or costs little, a fit works on a basis:
# columns z with x[, kept] = z %*% root, nearly orthogonal at the weights of the fit. `root` is from
# Householder's QR of the columns, so that coefficients keep the digits that lm() and glm() give
# them. Other fits use the columns unchanged, and x stays on its device.

# A column is dropped if its residual after regression on earlier columns has at most this fraction
# of its length. The limits are those of lm() and glm().
dependence <- function(family) if (is_least_squares(family)) 1e-7 else 1e-11

# Below this number of elements and multiplications, a basis costs very little.
basis_is_cheap <- function(x) {
  numbers <- as.double(nrow(x)) * ncol(x)
  numbers <= 1e5 && numbers * ncol(x) <= 5e6
}

# Whether the information matrix is too ill-conditioned to be inverted accurately.
is_skew <- function(info, least) {
  if (length(info) == 0L) return(FALSE)
  size <- sqrt(abs(diag(info)))
  if (!all(is.finite(size) & size > 0)) return(TRUE)
  root <- chol_or_null(info / tcrossprod(size))
  is.null(root) || min(diag(root)) < least
}

# The power of two nearest to each number, 1 for 0: dividing by it is exact.
power_of_two <- function(size) {
  size[size == 0] <- 1
  exponent <- floor(log2(size))
  exponent[exponent < -1022] <- -1022
  2^exponent
}

# The predictors of the observations in use as a base matrix.
used_x <- function(problem) {
  if (is_sparse(problem$x) && prod(dim(problem$x)) > most_dense) {
    abort_argument("x", paste("columns of 'x' are nearly linear combinations of others: remove or",
                              "scale them, as 'x' is too large to be made dense"))
  }
  x <- if (is_cl(problem$x) || is_sparse(problem$x)) as.matrix(problem$x) else problem$x
  if (is.null(problem$rows)) x else x[problem$rows, , drop = FALSE]
}

# The same, their columns divided by `unit`.
host_design <- function(problem) {
  x <- used_x(problem)
  dimnames(x) <- NULL
  size <- vapply(seq_len(ncol(x)), function(j) max(abs(x[, j]), 0), 0)
  bad <- which(!is.finite(size))
  if (length(bad) > 0L) abort_nonfinite_column(problem$names[bad[1L]], bad[1L])
  unit <- power_of_two(size)
  list(x = x / rep(unit, each = nrow(x)), unit = unit)
}

# Householder's QR as by lm(): see src/r/glm_fit.c.
rotate <- function(problem, w = NULL, tol = dependence(problem$family), x = used_x(problem)) {
  found <- .Call(r_rotation, x, w, tol)
  if (found$bad > 0L) abort_nonfinite_column(problem$names[found$bad], found$bad)
  found
}

# list(x, root, kept, unit). Columns that are linear combinations of earlier ones (dependence()) are
# not kept. `w`: the weights of the observations with respect to which x is to be orthogonal, or
# NULL. For an ordered family, whose cuts replace the intercept, the first column of the basis is
# constant, and `x` does not contain it.
glm_basis <- function(problem, w = NULL) {
  x <- used_x(problem)
  ordered <- is_ordered(problem$family)
  others <- seq_len(ncol(x))
  if (ordered) {
    others <- setdiff(others, problem$intercept)
    x <- cbind(rep(1, nrow(x)), x[, others, drop = FALSE])
    problem$names <- c("(Intercept)", problem$names[others])
  }
  found <- rotate(problem, x = x)
  root <- weighted_root(found, w)
  z <- .Call(r_solve_right, found$x, root)
  if (ordered) z <- z[, -1L, drop = FALSE]
  own <- if (ordered) found$kept[-1L] else found$kept
  list(x = z, root = root, kept = others[own - ordered], unit = found$unit[own], ordered = ordered)
}

# The triangular factor of the weighted x. Without weights or with equal ones, or if a column is
# zero in all rows with a positive weight, the unweighted factor, which is in `found`.
weighted_root <- function(found, w) {
  if (length(w) <= 1L || length(found$kept) == 0L || !all(w >= 0 & w < Inf) || !any(w > 0)) {
    return(found$root)
  }
  root <- .Call(r_rotation, found$x, w / max(w), 0)$root
  if (nrow(root) < length(found$kept) || !all(abs(diag(root)) > 0)) return(found$root)
  root
}

# ---- coefficients of the columns and of the basis ------------------------------------------------

# The triangular factor between the two sets of coefficients.
basis_root <- function(basis) if (basis$ordered) basis$root[-1L, -1L, drop = FALSE] else basis$root

# Matrices with a column for each class.
to_basis <- function(basis, beta) basis_root(basis) %*% (beta * basis$unit)
from_basis <- function(basis, gamma) {
  if (nrow(gamma) == 0L) return(gamma)
  backsolve(basis_root(basis), gamma) / basis$unit
}

# theta for the columns, computed from theta in the basis, and the matrix of that linear map. The
# cuts shift by the constants that the basis removed from the columns.
theta_of_columns <- function(core, theta) {
  basis <- core$basis
  if (is.null(basis)) return(theta)
  at <- seq_len(core$beta_count)
  out <- theta
  gamma <- matrix(theta[at], length(basis$kept))
  out[at] <- from_basis(basis, gamma)
  aux <- aux_index(core)
  if (basis$ordered && length(at) > 0L) {
    out[aux] <- theta[aux] + as.vector(cut_shift(basis) %*% gamma)
  }
  out
}

theta_map <- function(core) {
  basis <- core$basis
  map <- diag(core$count)
  k <- length(basis$kept)
  if (k == 0L) return(map)
  at <- seq_len(core$beta_count)
  inverse <- .Call(r_solve_right, diag(k), basis_root(basis)) / basis$unit
  map[at, at] <- if (core$classes <= 2L) inverse else
    kronecker(diag(core$classes - 1L), inverse)
  if (basis$ordered) map[aux_index(core), at] <- rep(cut_shift(basis), each = core$aux_count)
  map
}

# The change in all cuts for a unit of each column of the basis.
cut_shift <- function(basis) {
  root <- basis$root
  t(backsolve(basis_root(basis), root[1L, -1L] / root[1L, 1L], transpose = TRUE))
}

# The core on another basis, and theta there.
change_basis <- function(core, theta, w) {
  at <- theta_of_columns(core, theta)
  basis <- glm_basis(core$problem, w)
  if (!identical(basis$kept, core$kept)) return(NULL)
  beta <- seq_len(core$beta_count)
  scaled <- matrix(at[beta], length(basis$kept))
  out <- at
  out[beta] <- to_basis(basis, scaled)
  aux <- aux_index(core)
  if (basis$ordered && length(beta) > 0L) {
    out[aux] <- at[aux] - as.vector(cut_shift(basis) %*% to_basis(basis, scaled))
  }
  list(core = glm_core(core$problem, basis), theta = out)
}

# ---- columns of large problems -------------------------------------------------------------------

# list(columns, least): the columns of x whose residual after regression on earlier columns exceeds
# the fraction `none` of their length, and the smallest such fraction. The cross-product matrix
# identifies candidates for removal; for these the residual is computed exactly.
independent_columns <- function(gram, x, w, none) {
  p <- ncol(gram)
  size <- sqrt(diag(gram))
  scaled <- gram / tcrossprod(ifelse(size > 0, size, 1))
  root <- matrix(0, p, p) # upper, for the columns found so far
  found <- integer()
  least <- 1
  for (j in seq_len(p)) {
    k <- length(found)
    if (size[j] == 0) next
    above <- if (k > 0L) {
      backsolve(root[seq_len(k), seq_len(k), drop = FALSE], scaled[found, j], transpose = TRUE)
    }
    rest <- 1 - sum(above^2)
    if (rest < 1e-8) {
      rest <- (unexplained(x, w, found, j, gram) / size[j])^2
      if (rest < none^2) next
    }
    least <- min(least, sqrt(rest))
    root[seq_len(k), k + 1L] <- above
    root[k + 1L, k + 1L] <- sqrt(rest)
    found <- c(found, j)
  }
  list(columns = found, least = least)
}

# Length of the residual of column j after regression on the columns `found`, with one step of
# refinement.
unexplained <- function(x, w, found, j, gram) {
  rest <- as.vector(as.matrix(x[, j, drop = FALSE]))
  if (length(found) > 0L) for (again in 1:2) {
    right <- if (is.null(w)) rest else w * rest
    right <- as.vector(as.matrix(cl_crossprod(x, right)))[found]
    beta <- numeric(ncol(x))
    beta[found] <- solve_information(gram[found, found, drop = FALSE], right)
    rest <- rest - as.vector(as.matrix(cl_matmul(x, matrix(beta))))
  }
  sqrt(sum(if (is.null(w)) rest^2 else w * rest^2))
}

# Solves with a matrix that should be positive definite, after scaling its diagonal to 1. If it is
# not, its eigenvalues are made positive, so that the result is still an ascent direction.
solve_information <- function(info, right) {
  force(info)
  if (length(right) == 0L) return(right)
  size <- sqrt(abs(diag(info)))
  size[!(size > 0)] <- 1
  scaled <- info / outer(size, size)
  root <- chol_or_null(scaled)
  if (!is.null(root)) {
    half <- base::backsolve(root, right / size, transpose = TRUE)
    return(base::backsolve(root, half) / size)
  }
  parts <- eigen(scaled, symmetric = TRUE)
  values <- pmax(abs(parts$values), 1e-12 * max(abs(parts$values)))
  as.vector(parts$vectors %*% (crossprod(parts$vectors, right / size) / values)) / size
}
