# The Hessian of the random effects as a sparse matrix of any pattern. Its elements are values of
# the recorded program (src/program/sparse.h), in the order of the lower triangle by columns; the
# factor (src/ops/sparse.h) is analysed once a pattern and holds one matrix at a time.

# An environment with the compiled second derivatives and the factor; NULL if an operation has no
# rule for them, or if they take too much memory: then blocks are used (R/laplace-blocks.R). It
# belongs to the current program, which update() may change.
tmb_sparse <- function(o) {
  state <- tmb_ready(o)
  now <- state$known[[1L]]
  key <- list(now$nodes, now$data, state$where)
  live <- identical(o$sparse_of, key) &&
    (is.null(o$sparse) || .Call(r_sparse_is_live, o$sparse$program))
  if (!live) {
    o$sparse <- make_sparse(o, state, now)
    o$sparse_of <- key
  }
  o$sparse
}

make_sparse <- function(o, state, now) {
  if (is.null(state$program)) return(NULL)
  o$too_large <- NULL
  of <- tryCatch(sparse_program(state$where, now, seq_along(o$start) %in% o$random),
    statcl_error_memory = function(e) {
      o$too_large <- e
      NULL
    })
  if (is.null(of)) return(NULL)
  s <- list2env(of, parent = emptyenv())
  s$diagonal <- s$start[-length(s$start)] + 1
  s$factor <- .Call(r_sparse_analyse, s$start, s$row, NULL)
  s$serial <- 0
  s$held <- o$held
  if (!is.null(o$held)) s$pins <- max.col(t(o$held != 0), "first")
  s
}

# ---- either form of the Hessian ------------------------------------------------------------------

# A factor of the Hessian of the random effects at z, for the functions below. If the Hessian is not
# positive definite, multiples of the identity are added, and the result has the attribute
# "damped". NULL if it is not finite.
effects_factor <- function(o, z) {
  s <- tmb_sparse(o)
  if (is.null(s)) block_factor(block_hessian(o, z)) else sparse_factor(o, s, z)
}

# H^-1 x, for a vector or a matrix.
effects_solve <- function(o, factor, x) {
  if (is.environment(factor$of)) {
    solved <- .Call(r_sparse_solve, current_factor(factor), x + 0)
    if (is.null(factor$of$held)) return(solved)
    held <- held_parts(factor)
    by <- solved - held$less %*% crossprod(held$less, x) + held$more %*% crossprod(held$more, x)
    return(if (is.null(dim(x))) as.vector(by) else by)
  }
  block_solve(o, factor, block_solve(o, factor, x, transpose = TRUE))
}

# A square root of H^-1 times x: draws with that covariance matrix from independent ones.
effects_half_solve <- function(o, factor, x) {
  if (is.environment(factor$of)) return(.Call(r_sparse_half, current_factor(factor), 1L, x + 0))
  block_solve(o, factor, x)
}

# That of the effects which are integrated out.
effects_log_det <- function(o, factor) {
  profiled <- if (length(o$profiled) == 0L) 0 else profiled_parts(o, factor)$log_det
  if (!is.environment(factor$of)) return(block_log_det(factor) + profiled)
  value <- .Call(r_sparse_log_det, current_factor(factor)) + profiled
  value + if (is.null(factor$of$held)) 0 else held_parts(factor)$log_det
}

# Effects o$random[o$profiled] are at the mode without being integrated out. With P the inverse of
# the Hessian, B its columns of these and M their rows of B, the inverse for the others alone is
# P - B M^-1 B', which is 0 for these, and the determinant is that of the Hessian times det(M).
# list(less: B M^-1/2, log_det: of M).
profiled_parts <- function(o, factor) {
  at <- o$profiled
  unit <- matrix(0, length(o$random), length(at))
  unit[cbind(at, seq_along(at))] <- 1
  solved <- effects_solve(o, factor, unit)
  m <- solved[at, , drop = FALSE]
  root <- chol.default((m + t(m)) / 2)
  list(less = t(backsolve(root, t(solved), transpose = TRUE)), log_det = 2 * sum(log(diag(root))))
}

# These elements of the inverse for the effects that are integrated out alone.
less_profiled <- function(o, factor, inverse, row, column) {
  if (length(o$profiled) == 0L) return(inverse)
  less <- profiled_parts(o, factor)$less
  inverse - rowSums(less[row + 1L, , drop = FALSE] * less[column + 1L, , drop = FALSE])
}

# The diagonal of the inverse of the Hessian.
effects_variances <- function(o, factor) {
  if (!is.environment(factor$of)) return(block_variances(o, factor))
  selected_inverse(factor)[factor$of$diagonal]
}

# The gradient of log(det(H)) by all parameters.
effects_third <- function(o, mode) {
  factor <- mode$step$factor
  s <- factor$of
  if (!is.environment(s)) {
    less <- if (length(o$profiled) > 0L) profiled_parts(o, factor)$less
    return(third_derivatives(o, mode, less))
  }
  weights <- 2 * less_profiled(o, factor, selected_inverse(factor), s$row, s$column)
  weights[s$diagonal] <- weights[s$diagonal] / 2
  -.Call(r_sparse_adjoint, s$program, mode$z, weights)
}

# ---- the sparse one ------------------------------------------------------------------------------

# A factor: list(of, h, shift, serial, pin), the numbers of the matrix and what made them.
sparse_factor <- function(o, s, z) {
  h <- -.Call(r_sparse_run, s$program, z)
  if (!all(is.finite(h))) return(NULL)
  pin <- NULL
  if (!is.null(s$held)) {
    pin <- pmax(h[s$diagonal[s$pins]], 1e-8)
    h[s$diagonal[s$pins]] <- h[s$diagonal[s$pins]] + pin
  }
  # of a normal model the matrix is the same at the mode and where Newton's method began
  if (identical(s$last$h, h) && s$last$serial == s$serial) return(s$last)
  shift <- 0
  highest <- NULL
  for (attempt in 1:31) {
    s$serial <- s$serial + 1
    bad <- .Call(r_sparse_factorize, s$factor, h, shift)
    if (attempt == 1L) o$indefinite <- bad
    if (bad == 0) {
      s$last <- structure(list(of = s, h = h, shift = shift, serial = s$serial, pin = pin),
                          damped = shift > 0)
      return(s$last)
    }
    if (is.null(highest)) highest <- max(abs(h[s$diagonal]), 1e-4)
    shift <- if (shift == 0) 1e-4 * highest else 4 * shift
  }
  NULL
}

# The handle, with this matrix in it.
current_factor <- function(factor) {
  s <- factor$of
  if (s$serial != factor$serial) {
    .Call(r_sparse_factorize, s$factor, factor$h, factor$shift)
    s$serial <- factor$serial
  }
  s$factor
}

# ---- with the parameters -------------------------------------------------------------------------

# The lower triangle of the negative Hessian of the joint density of the parameters and the random
# effects at theta, with the Hessian `fixed` of Laplace's approximation by theta: list(row, column,
# x). With H the Hessian of the random effects and C its columns by theta, the matrix is
# H      C
# C'     fixed + C' H^-1 C
joint_numbers <- function(o, theta, fixed) {
  q <- length(o$random)
  p <- length(o$fixed)
  mode <- require_mode(o, theta, "par")
  cross <- tmb_hessian(o, mode$z, o$fixed, o$random)
  fixed <- fixed + crossprod(cross, effects_solve(o, mode$step$factor, cross))
  s <- tmb_sparse(o)
  h <- if (is.null(s)) as.vector(tmb_hessian(o, mode$z, o$random, o$random)) else mode$step$factor$h
  row <- if (is.null(s)) rep(seq_len(q), q) else s$row + 1L
  column <- if (is.null(s)) rep(seq_len(q), each = q) else s$column + 1L
  low <- row >= column
  at <- rbind(cbind(row, column)[low, ], cbind(q + rep(seq_len(p), each = q), rep(seq_len(q), p)),
              q + which(lower.tri(fixed, TRUE), arr.ind = TRUE))
  place <- c(o$random, o$fixed) # of each row
  list(row = pmax(place[at[, 1L]], place[at[, 2L]]),
       column = pmin(place[at[, 1L]], place[at[, 2L]]),
       x = c(h[low], cross, fixed[lower.tri(fixed, TRUE)]))
}

# The same as a matrix, sparse if Matrix is installed.
joint_precision <- function(o, theta, cov) {
  if (length(o$random) == 0L) {
    return(structure(safe_inverse(cov), dimnames = list(o$names, o$names)))
  }
  of <- joint_numbers(o, theta, safe_inverse(cov))
  n <- length(o$names)
  names <- list(o$names, o$names)
  if (requireNamespace("Matrix", quietly = TRUE)) {
    return(Matrix::sparseMatrix(of$row, of$column, x = of$x, dims = c(n, n), symmetric = TRUE,
                                dimnames = names))
  }
  dense <- matrix(0, n, n, dimnames = names)
  dense[cbind(of$row, of$column)] <- dense[cbind(of$column, of$row)] <- of$x
  dense
}

# The elements of H^-1 that H has.
selected_inverse <- function(factor) {
  s <- factor$of
  inverse <- .Call(r_sparse_inverse, current_factor(factor))
  if (is.null(s$held)) return(inverse)
  held <- held_parts(factor)
  for (k in seq_len(ncol(s$held))) {
    less <- held$less[, k]
    more <- held$more[, k]
    inverse <- inverse - less[s$row + 1L] * less[s$column + 1L] +
      more[s$row + 1L] * more[s$column + 1L]
  }
  inverse
}

# ---- effects with linear constraints -------------------------------------------------------------

# The effects u with C'u = 0, where the columns of C = s$held are orthonormal. All functions above
# then take H as a form on these u: with the factor of F = H + E E', where E has a number for one
# effect of each constraint, so that F is positive definite where H is for these u only,
#   P = F^-1 - R R',  R = F^-1 C M^-1/2,  M = C' F^-1 C   (the inverse of F as such a form)
#   H^-1 = P + T T',  T = P E N^-1/2,     N = I - E' P E
# and the determinant is det(F) det(M) det(N). list(less: R, more: T, log_det: of M and N).
held_parts <- function(factor) {
  s <- factor$of
  if (!identical(s$held_serial, factor$serial)) {
    handle <- current_factor(factor)
    solved <- .Call(r_sparse_solve, handle, s$held)
    root <- chol.default(crossprod(s$held, solved))
    less <- t(backsolve(root, t(solved), transpose = TRUE))
    k <- ncol(s$held)
    unit <- matrix(0, nrow(s$held), k)
    unit[cbind(s$pins, seq_len(k))] <- sqrt(factor$pin)
    solved <- .Call(r_sparse_solve, handle, unit) - less %*% crossprod(less, unit)
    left <- chol.default(diag(k) - crossprod(unit, solved))
    s$held_parts <- list(less = less, more = t(backsolve(left, t(solved), transpose = TRUE)),
                         log_det = 2 * sum(log(c(diag(root), diag(left)))))
    s$held_serial <- factor$serial
  }
  s$held_parts
}
