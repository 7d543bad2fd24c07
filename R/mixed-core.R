# Linear algebra of models with random effects. Effects of the same grouping factor are a block:
# L levels with K columns each, u an L x K matrix. The first block has the most levels; its part of
# the Hessian consists of L matrices K x K, which are factorized together. After its elimination the
# Schur complement of the other blocks and of the fixed effects remains, which is dense.

# Blocks of the random terms: g (codes by first appearance, so that sums by code come in order), L,
# K, x (n x K, columns scaled to mean square 1), scale, sizes (columns of each term).
mixed_blocks <- function(designs) {
  names <- vapply(designs, `[[`, "", "group")
  blocks <- lapply(unique(names), function(name) {
    own <- designs[names == name]
    f <- own[[1L]]$factor
    first <- unique(as.integer(f))
    x <- do.call(cbind, lapply(own, `[[`, "x"))
    columns <- colnames(x)
    scale <- sqrt(colMeans(x^2))
    scale[scale == 0] <- 1
    dimnames(x) <- NULL
    list(name = name, g = match(as.integer(f), first), L = length(first), K = ncol(x),
         x = x / rep(scale, each = nrow(x)), scale = scale, columns = columns,
         levels = levels(f)[first], order = order(first), sizes = vapply(own, function(d)
           ncol(d$x), 0L))
  })
  blocks[order(-vapply(blocks, function(b) b$L * 1.0, 0))]
}

# The model: blocks, the column before the first one of each block in the Schur complement, and the
# pairs of levels of different blocks that occur together.
mixed_model <- function(designs) {
  blocks <- mixed_blocks(designs)
  n <- length(blocks[[1L]]$g)
  size <- vapply(blocks, function(b) b$L * b$K, 0)
  before <- c(0, 0, cumsum(size[-1L]))[seq_along(blocks)]
  pairs <- list()
  for (b in seq_along(blocks)) for (c in seq_along(blocks)) if (b < c) {
    key <- blocks[[b]]$g + as.double(blocks[[b]]$L) * (blocks[[c]]$g - 1)
    first <- which(!duplicated(key))
    pairs[[paste(b, c)]] <- list(index = match(key, key[first]), count = length(first),
                                 from = blocks[[b]]$g[first], to = blocks[[c]]$g[first])
  }
  model <- list(blocks = blocks, n = n, before = before, dense = sum(size[-1L]), pairs = pairs)
  model$at <- theta_layout(model)
  filled <- sum(vapply(seq_along(blocks)[-1L], function(c)
    pairs[[paste(1, c)]]$count * as.double(blocks[[c]]$K), 0))
  cells <- as.double(blocks[[1L]]$L) * model$dense
  model$sparse <- cells > 1e5 && filled < cells / 10 && requireNamespace("Matrix", quietly = TRUE)
  model
}

# Sums of the rows of v by index, whose numbers appear in increasing order.
sums_by <- function(v, index, count) {
  v <- as.matrix(v)
  if (count < nrow(v)) v <- rowsum(v, index, reorder = FALSE)
  dimnames(v) <- NULL
  v
}

columns_of <- function(model, b, j) {
  block <- model$blocks[[b]]
  model$before[b] + (j - 1) * block$L + seq_len(block$L)
}

# Z'WZ with f further columns: list(first: L x K^2, cross: for each column of the first block an
# L x m matrix, sparse if model$sparse, rest: m x m), m = dense + f.
mixed_gram <- function(model, w = NULL, further = NULL) {
  blocks <- model$blocks
  m <- model$dense + NCOL(further) * !is.null(further)
  last <- seq_len(m - model$dense) + model$dense
  one <- blocks[[1L]]
  bytes <- 8 * (if (model$sparse) 0 else as.double(one$L) * one$K + m) * m
  weigh <- function(v) if (is.null(w)) v else w * v
  first <- sums_by(weigh(one$x[, rep(seq_len(one$K), one$K)] *
                           one$x[, rep(seq_len(one$K), each = one$K)]), one$g, one$L)
  cross <- lapply(seq_len(one$K), function(i) list())
  rest <- with_memory(matrix(0, m, m), bytes)
  for (b in seq_along(blocks)) {
    block <- blocks[[b]]
    for (i in seq_len(block$K)) {
      v <- weigh(block$x[, i])
      rows <- columns_of(model, b, i)
      if (length(last) > 0L) {
        sums <- sums_by(v * further, block$g, block$L)
        if (b == 1L) {
          cross[[i]] <- list(list(rep(seq_len(one$L), length(last)), rep(last, each = one$L), sums))
        } else rest[rows, last] <- sums
      }
      if (b > 1L) for (j in seq_len(block$K)) {
        rest[cbind(rows, columns_of(model, b, j))] <- sums_by(v * block$x[, j], block$g, block$L)
      }
      for (c in seq_along(blocks)) if (c > b) {
        pair <- model$pairs[[paste(b, c)]]
        for (j in seq_len(blocks[[c]]$K)) {
          sums <- sums_by(v * blocks[[c]]$x[, j], pair$index, pair$count)
          to <- columns_of(model, c, j)[pair$to]
          if (b == 1L) {
            cross[[i]] <- c(cross[[i]], list(list(pair$from, to, sums)))
          } else rest[cbind(rows[pair$from], to)] <- sums
        }
      }
    }
  }
  if (length(last) > 0L) rest[last, last] <- crossprod(further, weigh(further))
  rest[lower.tri(rest)] <- t(rest)[lower.tri(rest)]
  cross <- lapply(cross, cross_matrix, one$L, m, model$sparse)
  list(first = first, cross = cross, rest = rest,
       rows = if (model$sparse && all_single(model)) sparse_rows(cross[[1L]]))
}

# Whether each level has one effect.
all_single <- function(model) all(vapply(model$blocks, function(block) block$K == 1L, NA))

# The factors of m columns after the first block: the blocks' lambda, and 1 for further columns.
column_scale <- function(model, lambda, m) {
  blocks <- model$blocks[-1L]
  c(rep(as.double(unlist(lambda[-1L])), vapply(blocks, `[[`, 0L, "L")), rep(1, m - model$dense))
}

# A matrix from lists of rows, columns and values.
cross_matrix <- function(parts, rows, columns, sparse) {
  collect <- function(k) unlist(lapply(parts, `[[`, k))
  if (sparse) {
    return(Matrix::sparseMatrix(i = collect(1L), j = collect(2L), x = collect(3L),
                                dims = c(rows, columns)))
  }
  result <- matrix(0, rows, columns)
  if (length(parts) > 0L) result[cbind(collect(1L), collect(2L))] <- collect(3L)
  result
}

# M Lambda, for the blocks after the first; other columns are unchanged.
times_lambda <- function(m, model, lambda) {
  blocks <- model$blocks[-1L]
  if (all(vapply(blocks, function(block) block$K == 1L, NA))) {
    scale <- column_scale(model, lambda, ncol(m))
    if (!isS4(m)) return(m * rep(scale, each = nrow(m)))
    m@x <- m@x * rep(scale, diff(m@p))
    return(m)
  }
  if (isS4(m)) {
    roots <- c(Map(function(l, block) kronecker(Matrix::Matrix(l), Matrix::Diagonal(block$L)),
                   lambda[-1L], blocks), list(Matrix::Diagonal(ncol(m) - model$dense)))
    return(m %*% Matrix::bdiag(roots))
  }
  for (b in seq_along(lambda)[-1L]) {
    block <- model$blocks[[b]]
    parts <- lapply(seq_len(block$K), function(j) m[, columns_of(model, b, j), drop = FALSE])
    for (j in seq_len(block$K)) {
      m[, columns_of(model, b, j)] <- Reduce(`+`, Map(`*`, parts, lambda[[b]][, j]))
    }
  }
  m
}

# The Cholesky factor of Lambda' Z'WZ Lambda + I, bordered by the further columns: `l` of the first
# block (lists of vectors), P = L^-1 Lambda' cross (not yet times the other blocks' Lambda), and the
# upper factor R of the Schur complement. NULL if it is not positive definite.
mixed_factor <- function(model, gram, lambda) {
  K <- model$blocks[[1L]]$K
  one <- lambda[[1L]]
  d <- gram$first %*% kronecker(one, one)
  at <- function(i, j) i + (j - 1L) * K
  l <- p <- vector("list", K)
  for (j in seq_len(K)) {
    l[[j]] <- vector("list", j)
    for (k in seq_len(j)) {
      s <- d[, at(j, k)] + (j == k)
      for (h in seq_len(k - 1L)) s <- s - l[[j]][[h]] * l[[k]][[h]]
      if (j == k && !all(s > 0)) return(NULL)
      l[[j]][[k]] <- if (j == k) sqrt(s) else s / l[[k]][[k]]
    }
    s <- Reduce(`+`, Map(`*`, gram$cross[j:K], one[j:K, j]))
    for (h in seq_len(j - 1L)) s <- s - l[[j]][[h]] * p[[h]]
    p[[j]] <- s / l[[j]][[j]]
  }
  log_det <- 2 * sum(vapply(seq_len(K), function(j) sum(log(l[[j]][[j]])), 0))
  rest <- gram$rest
  if (length(rest) > 0L) {
    own <- seq_len(model$dense)
    if (!is.null(gram$rows)) {
      rest <- .Call(r_schur, gram$rows, (as.double(one) / l[[1L]][[1L]])^2, rest,
                    column_scale(model, lambda, ncol(rest)), model$dense)
    } else {
      rest <- rest - if (model$sparse) {
        Reduce(`+`, lapply(p, function(p) as.matrix(Matrix::crossprod(p))))
      } else large(cl_crossprod, crossprod, if (K == 1L) p[[1L]] else do.call(rbind, p))
      rest <- times_lambda(t(times_lambda(rest, model, lambda)), model, lambda)
      diag(rest)[own] <- diag(rest)[own] + 1
    }
    rest <- tryCatch(large(cl_chol, chol, rest), error = function(e) NULL)
    if (is.null(rest)) return(NULL)
    log_det <- log_det + 2 * sum(log(diag(rest)[own]))
  }
  list(l = l, p = p, r = rest, lambda = lambda, log_det = log_det)
}

# Small matrices are left to base R: a call of our functions would take longer than the work.
large <- function(ours, base, x) if (length(x) > 4e4) ours(x) else base(x)

# The blocks of a vector of effects, from the first block's L x K and the rest.
effect_blocks <- function(model, first, rest) {
  c(list(first), lapply(seq_along(model$blocks)[-1L], function(b) {
    matrix(rest[model$before[b] + seq_len(model$blocks[[b]]$L * model$blocks[[b]]$K)],
           model$blocks[[b]]$L)
  }))
}

# L x = v or L' x = v of the first block, for a list of its columns.
first_forward <- function(f, v) {
  for (j in seq_along(v)) {
    for (k in seq_len(j - 1L)) v[[j]] <- v[[j]] - f$l[[j]][[k]] * v[[k]]
    v[[j]] <- v[[j]] / f$l[[j]][[j]]
  }
  v
}

first_backward <- function(f, v) {
  for (j in rev(seq_along(v))) {
    for (k in seq_along(v)[-seq_len(j)]) v[[j]] <- v[[j]] - f$l[[k]][[j]] * v[[k]]
    v[[j]] <- v[[j]] / f$l[[j]][[j]]
  }
  v
}

# The solution from its part `rest` (others blocks and fixed effects) and t = L^-1 times the right
# side of the first block.
mixed_back <- function(model, f, t, rest) {
  if (length(rest) > 0L) {
    scaled <- as.vector(times_lambda(matrix(rest, 1L), model, lapply(f$lambda, t)))
    columns <- seq_along(rest)
    t <- Map(function(t, p) t - as.vector(p[, columns, drop = FALSE] %*% scaled), t, f$p)
  }
  effect_blocks(model, do.call(cbind, first_backward(f, t)), rest)
}

# ---- parameters ----------------------------------------------------------------------------------

# theta: the lower triangles of the terms' factors, column by column, as in lme4, for the scaled
# columns. Diagonal elements of estimates are not negative.
theta_layout <- function(model) {
  at <- do.call(rbind, lapply(seq_along(model$blocks), function(b) {
    sizes <- model$blocks[[b]]$sizes
    do.call(rbind, lapply(seq_along(sizes), function(t) {
      before <- sum(sizes[seq_len(t - 1L)])
      k <- sizes[t]
      lower <- which(row(diag(k)) >= col(diag(k)), arr.ind = TRUE)
      cbind(block = b, row = before + lower[, 1L], col = before + lower[, 2L])
    }))
  }))
  rownames(at) <- NULL
  at
}

theta_lambda <- function(model, theta) {
  lapply(seq_along(model$blocks), function(b) {
    own <- model$at[, 1L] == b
    l <- matrix(0, model$blocks[[b]]$K, model$blocks[[b]]$K)
    l[model$at[own, 2:3, drop = FALSE]] <- theta[own]
    l
  })
}

# ---- sums over the rows of the data --------------------------------------------------------------

# Z Lambda u.
random_part <- function(model, lambda, u) {
  eta <- 0
  for (b in seq_along(u)) {
    block <- model$blocks[[b]]
    eta <- eta + rowSums(block$x * tcrossprod(u[[b]], lambda[[b]])[block$g, , drop = FALSE])
  }
  eta
}

# Z'v, as blocks.
random_sums <- function(model, v) {
  lapply(model$blocks, function(block) sums_by(block$x * v, block$g, block$L))
}

# Parts of H^-1: `own`, those of each level of the first block (lists of K x K vectors), `inverse`
# of the others, numbered `many`, and between them minus y %*% inverse, of which cross_elements()
# and cross_columns() give parts: the whole would take gigabytes where each level occurs with few
# others.
inverse_parts <- function(model, f, many = seq_len(model$dense)) {
  one <- model$blocks[[1L]]
  K <- one$K
  unit <- lapply(seq_len(K), function(j) lapply(seq_len(K), function(k) rep(1 * (j == k), one$L)))
  own <- lapply(unit, function(v) first_backward(f, first_forward(f, v)))
  if (length(many) == 0L) return(list(own = own))
  inverse <- chol2inv(f$r[many, many, drop = FALSE])
  y <- first_backward(f, lapply(f$p, function(p)
    times_lambda(p[, many, drop = FALSE], model, f$lambda)))
  parts <- list(inverse = inverse, cross = lapply(y, if (isS4(y[[1L]])) sparse_rows else function(y)
    cl_matmul(y, inverse)))
  for (i in seq_len(K)) for (j in seq_len(K)) {
    own[[i]][[j]] <- own[[i]][[j]] + row_products(y[[j]], parts, i)
  }
  c(parts, list(own = own))
}

# The row sums of a times those of `cross` for effect i, for a dense or sparse.
row_products <- function(a, parts, i) {
  if (!isS4(a)) return(rowSums(a * parts$cross[[i]]))
  a@x <- a@x * cross_elements(parts, i, a@i + 1L, rep(seq_len(ncol(a)), diff(a@p)))
  Matrix::rowSums(a)
}

# A sparse matrix by rows, as src/r/mixed.c takes it.
sparse_rows <- function(m) {
  turned <- Matrix::t(m)
  list(turned@p, turned@i, turned@x)
}

# Elements of y %*% inverse for effect i of the levels of the first block.
cross_elements <- function(parts, i, row, column) {
  of <- parts$cross[[i]]
  if (!is.list(of)) return(of[cbind(row, column)])
  .Call(r_row_products, of, parts$inverse, as.integer(row), as.integer(column))
}

# Whole columns of the same.
cross_columns <- function(parts, i, columns) {
  of <- parts$cross[[i]]
  if (!is.list(of)) return(of[, columns, drop = FALSE])
  levels <- length(of[[1L]]) - 1L
  vapply(columns, function(column) cross_elements(parts, i, seq_len(levels), rep(column, levels)),
         numeric(levels))
}

# For each block the n x K matrix of rows H^-1 Lambda' z at the level of the observation, where H is
# the Hessian of the effects, or of these and of the further columns x that R has.
inverse_rows <- function(model, f, x = NULL) {
  blocks <- model$blocks
  z <- Map(function(block, lambda) block$x %*% lambda, blocks, f$lambda)
  g <- lapply(z, function(v) v * 0)
  one <- blocks[[1L]]
  K <- one$K
  many <- seq_len(model$dense + NCOL(x) * !is.null(x))
  parts <- inverse_parts(model, f, many)
  own <- parts$own
  inverse <- parts$inverse
  for (i in seq_len(K)) for (j in seq_len(K)) {
    g[[1L]][, i] <- g[[1L]][, i] + own[[i]][[j]][one$g] * z[[1L]][, j]
  }
  at <- lapply(seq_along(blocks)[-1L], function(b) vapply(seq_len(blocks[[b]]$K), function(j)
    columns_of(model, b, j)[blocks[[b]]$g], numeric(model$n)))
  last <- many[many > model$dense]
  for (i in seq_len(K)) {
    for (b in seq_along(at)) for (j in seq_len(ncol(at[[b]]))) {
      s <- -cross_elements(parts, i, one$g, at[[b]][, j])
      g[[1L]][, i] <- g[[1L]][, i] + s * z[[b + 1L]][, j]
      g[[b + 1L]][, j] <- g[[b + 1L]][, j] + s * z[[1L]][, i]
    }
    if (length(last) > 0L) {
      s <- cross_columns(parts, i, last)[one$g, , drop = FALSE]
      g[[1L]][, i] <- g[[1L]][, i] - rowSums(s * x)
    }
  }
  for (b in seq_along(at)) for (i in seq_len(ncol(at[[b]]))) {
    for (c in seq_along(at)) for (j in seq_len(ncol(at[[c]]))) {
      s <- inverse[cbind(at[[b]][, i], at[[c]][, j])]
      g[[b + 1L]][, i] <- g[[b + 1L]][, i] + s * z[[c + 1L]][, j]
    }
    if (length(last) > 0L) {
      s <- inverse[, last, drop = FALSE][at[[b]][, i], , drop = FALSE]
      g[[b + 1L]][, i] <- g[[b + 1L]][, i] + rowSums(s * x)
    }
  }
  g
}

# The derivatives of log(det(H)) / 2 with respect to the lambdas, where each level has one effect
# and occurs with few others; H as for inverse_rows(), with the first `many` of its further columns,
# and H = D A D + E for D = diag(lambda, ..., 1) and E = diag(1, ..., 0), so that the derivative is
# tr(H^-1 (H - E)) over the effects of a block, divided by lambda; 0 if lambda is 0. NULL where that
# loses digits.
determinant_slopes <- function(model, gram, f, many) {
  lambda <- as.double(unlist(f$lambda))
  if (is.null(gram$rows) || any(lambda != 0 & abs(lambda) < 1e-3)) return(NULL)
  square <- f$l[[1L]][[1L]]^2
  m <- model$dense + many
  inverse <- base::chol2inv(f$r, m)
  forms <- .Call(r_row_forms, gram$rows, inverse, column_scale(model, f$lambda, m))
  own <- diag(inverse)
  left <- vapply(seq_along(model$blocks), function(b) {
    if (b == 1L) return(sum(1 / square + (lambda[1L] / square)^2 * forms))
    sum(own[columns_of(model, b, 1L)])
  }, 0)
  ifelse(lambda != 0, (vapply(model$blocks, `[[`, 0L, "L") - left) / lambda, 0)
}

# The derivatives with respect to theta, tr(H^-1 dH) / 2 plus sum(a' dLambda b) over the levels, for
# lists of blocks a and b (L x K each).
theta_slope <- function(model, g, w, a, b) {
  slopes <- lapply(seq_along(model$blocks), function(k) {
    block <- model$blocks[[k]]
    first <- if (is.double(g)) g[k] else crossprod(if (is.null(w)) block$x else w * block$x, g[[k]])
    first + crossprod(a[[k]], b[[k]])
  })
  vapply(seq_len(nrow(model$at)), function(i)
    slopes[[model$at[i, 1L]]][model$at[i, 2L], model$at[i, 3L]], 0)
}

# The solution for a right side in blocks, and `more` for the further columns of f, whose part of
# the solution is the attribute "more".
mixed_solve <- function(model, f, v, more = NULL) {
  t <- first_forward(f, lapply(seq_len(ncol(v[[1L]])), function(j) v[[1L]][, j]))
  rest <- c(as.double(unlist(v[-1L])), more)
  if (length(rest) > 0L) {
    seen <- Reduce(`+`, Map(function(p, t) as.vector(t %*% p), f$p, t))
    rest <- rest - as.vector(times_lambda(matrix(seen, 1L), model, f$lambda))
    rest <- backsolve(f$r, backsolve(f$r, rest, transpose = TRUE))
  }
  structure(mixed_back(model, f, t, rest), more = rest[model$dense + seq_along(more)])
}
