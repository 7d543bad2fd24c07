# The Hessian of the random effects in dense blocks, where there is no sparse one
# (R/laplace-sparse.R). Effects without a common operation in the record (src/program/blocks.c) have
# no second derivatives with each other. Such a matrix is a list of arrays n x n x count, one for
# each size n of blocks.

# list(of: for each size the effects of its blocks, n x count, numbered among the random effects;
# most: the largest size). It belongs to the current program, which update() may change.
tmb_blocks <- function(o) {
  state <- tmb_ready(o)
  now <- state$known[[1L]]
  if (is.null(o$blocks) || !identical(o$blocks$nodes, now$nodes) ||
        !identical(o$blocks$data, now$data)) {
    label <- seq_along(o$random)
    if (!is.null(state$program)) {
      chosen <- as.raw(seq_along(o$start) %in% o$random)
      label <- .Call(r_program_blocks, now$nodes, now$data, now$output, chosen)[o$random]
    }
    members <- unname(split(seq_along(label), label))
    of <- unname(lapply(split(members, lengths(members)), function(m) do.call(cbind, m)))
    check_blocks(of, o$too_large)
    o$blocks <- list(of = of, most = max(lengths(members)), nodes = now$nodes, data = now$data)
  }
  o$blocks
}

most_coupled <- 4000L  # effects of one block
most_numbers <- 2^27   # of all blocks

check_blocks <- function(of, too_large) {
  size <- vapply(of, nrow, 0L)
  if (max(size) <= most_coupled && sum(as.double(size) * lengths(of)) <= most_numbers) return()
  if (!is.null(too_large)) {
    statcl_abort("memory", sprintf(paste(
      "the Hessian of the %d random effects, of which up to %d depend on each other, takes more",
      "memory than there is: %s"), sum(lengths(of)), max(size), conditionMessage(too_large)),
      bytes = too_large$bytes, limit = too_large$limit)
  }
  abort_argument("random", sprintf(paste(
    "'random' has %d effects, of which up to %d depend on each other; 'nll' has an operation on",
    "them without sparse second derivatives (see ?cl_tmb), so that their Hessian is kept as dense",
    "blocks of up to %d, %.0f numbers in all; cl_sample() on the joint density of",
    "cl_tmb(random = NULL) has no limit"),
    sum(lengths(of)), max(size), most_coupled, most_numbers))
}

# A direction: element k of each block; `values` has the elements for each size.
block_direction <- function(o, k, values) {
  direction <- numeric(length(o$start))
  of <- tmb_blocks(o)$of
  for (i in seq_along(of)) {
    if (nrow(of[[i]]) >= k) direction[o$random[values[[i]]$at]] <- values[[i]]$x
  }
  direction
}

# The Hessian at z: column k of all blocks at once.
block_hessian <- function(o, z) {
  b <- tmb_blocks(o)
  h <- lapply(b$of, function(at) array(0, c(nrow(at), nrow(at), ncol(at))))
  program <- tmb_derivatives(o, 2L)
  step <- if (is.null(program)) .Machine$double.eps^(1 / 3) * pmax(1, abs(z)) else rep(1, length(z))
  for (k in seq_len(b$most)) {
    direction <- block_direction(o, k, lapply(b$of, function(at) {
      if (nrow(at) >= k) list(at = at[k, ], x = step[o$random[at[k, ]]])
    }))
    column <- if (is.null(program)) {
      (tmb_slope(o, z + direction) - tmb_slope(o, z - direction))[o$random] / 2
    } else {
      -.Call(r_program_product, program, z, direction)[o$random]
    }
    for (i in seq_along(h)) {
      at <- b$of[[i]]
      if (nrow(at) < k) next
      h[[i]][, k, ] <- column[at] / rep(step[o$random[at[k, ]]], each = nrow(at))
    }
  }
  lapply(h, function(a) (a + aperm(a, c(2L, 1L, 3L))) / 2)
}

# Upper Cholesky factors of the blocks. To a block that is not positive definite a multiple of the
# identity is added, and the result has the attribute "damped". NULL if some are not finite.
block_factor <- function(h) {
  damped <- FALSE
  for (i in seq_along(h)) {
    h[[i]] <- damped_factors(h[[i]])
    if (is.null(h[[i]])) return(NULL)
    damped <- damped || isTRUE(attr(h[[i]], "damped"))
  }
  structure(h, damped = damped)
}

damped_factors <- function(h) {
  if (!all(is.finite(h))) return(NULL)
  n <- dim(h)[1L]
  bad <- seq_len(dim(h)[3L])
  factors <- h
  shift <- numeric(length(bad))
  for (attempt in 1:31) {
    tried <- class_factors(h[, , bad, drop = FALSE])
    factors[, , bad] <- tried$value
    bad <- bad[tried$bad]
    if (length(bad) == 0L) return(structure(factors, damped = attempt > 1L))
    diagonal <- diagonal_places(n, bad)
    highest <- apply(abs(matrix(h[diagonal], n)), 2L, max)
    more <- ifelse(shift[bad] == 0, 1e-4 * pmax(highest, 1e-4), 3 * shift[bad])
    h[diagonal] <- h[diagonal] + rep(more, each = n)
    shift[bad] <- shift[bad] + more
  }
  NULL
}

# Where the diagonals of these matrices are in an array n x n x count: as a vector, because a matrix
# of three columns is a subscript of another kind.
diagonal_places <- function(n, matrices) {
  as.vector(outer(seq(1, n^2, by = n + 1), n^2 * (matrices - 1), "+"))
}

# list(value, bad: the blocks that have no factor).
class_factors <- function(h) {
  size <- dim(h)
  if (size[1L] <= batch_order) {
    where <- batch_where("chol", size[1L], size[1L]^3 * size[3L])
    result <- call_on(where, r_batch_chol, h, size[1L], size[3L], TRUE)
    return(list(value = result$value, bad = which(as.integer(result$status) != 0L)))
  }
  bad <- integer()
  for (k in seq_len(size[3L])) {
    factor <- tryCatch(chol.default(h[, , k]), error = function(e) NULL)
    if (is.null(factor)) bad <- c(bad, k) else h[, , k] <- factor
  }
  list(value = h, bad = bad)
}

# backsolve(factor, x, transpose) by blocks; x has a row for each random effect.
block_solve <- function(o, factor, x, transpose = FALSE) {
  shape <- dim(x)
  x <- as.matrix(x)
  of <- tmb_blocks(o)$of
  for (i in seq_along(of)) {
    at <- of[[i]]
    if (nrow(at) <= batch_order) {
      b <- aperm(array(x[at, ], c(dim(at), ncol(x))), c(1L, 3L, 2L))
      solved <- cl_batch_tri_solve(factor[[i]], b, upper = TRUE, transpose = transpose)
      x[at, ] <- aperm(solved, c(1L, 3L, 2L))
      next
    }
    for (k in seq_len(ncol(at))) {
      x[at[, k], ] <- backsolve(factor[[i]][, , k], x[at[, k], ], transpose = transpose)
    }
  }
  dim(x) <- shape
  x
}

# The inverses of the factors.
block_inverse <- function(factor) {
  lapply(factor, function(r) {
    n <- dim(r)[1L]
    if (n <= batch_order) {
      return(cl_batch_tri_solve(r, array(diag(n), c(n, n, 1L)), upper = TRUE))
    }
    for (k in seq_len(dim(r)[3L])) r[, , k] <- backsolve(r[, , k], diag(n))
    r
  })
}

block_log_det <- function(factor) {
  2 * sum(vapply(factor, function(r) {
    sum(log(r[diagonal_places(dim(r)[1L], seq_len(dim(r)[3L]))]))
  }, 0))
}

# The diagonal of the inverse of the Hessian.
block_variances <- function(o, factor) {
  of <- tmb_blocks(o)$of
  result <- numeric(length(o$random))
  inverse <- block_inverse(factor)
  for (i in seq_along(of)) result[of[[i]]] <- apply(inverse[[i]]^2, c(1L, 3L), sum)
  result
}
