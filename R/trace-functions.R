# Functions of base R and stats that have no method for traced values, or dispatch on their first
# argument only. Each is replaced by one that calls the original unless an argument is traced.

# Whether any argument is a traced value.
any_traced <- function(...) {
  for (k in seq_len(...length())) if (is_traced(...elt(k))) return(TRUE)
  FALSE
}

# ---- products -----------------------------------------------------------------------------------

# The dimensions of both operands of a product as matrices; base R treats vectors as rows or
# columns. `kind`: 0: x y, 1: x' y, 2: x y'.
product_dims <- function(x, y, kind) {
  dx <- x$dim
  dy <- y$dim
  if (!is.null(dx) && length(dx) != 2L) dx <- NULL
  if (!is.null(dy) && length(dy) != 2L) dy <- NULL
  n <- x$n
  m <- y$n
  if (is.null(dx) && is.null(dy)) {
    if (kind == 0L) {
      dx <- c(1L, n)
      dy <- if (n == m) c(m, 1L) else c(1L, m)
    } else {
      dx <- c(n, 1L)
      dy <- if (kind == 1L && n == 1L) c(1L, m) else c(m, 1L)
    }
  } else if (is.null(dx)) {
    inner <- if (kind == 2L) dy[2L] else dy[1L]
    # x is a row, and therefore a column in x' y.
    dx <- if (n == inner) { if (kind == 1L) c(n, 1L) else c(1L, n) } else
      if (kind == 1L) c(1L, n) else c(n, 1L)
  } else if (is.null(dy)) {
    inner <- if (kind == 1L) dx[1L] else dx[2L]
    dy <- if (m == inner) { if (kind == 2L) c(1L, m) else c(m, 1L) } else
      if (kind == 2L) c(m, 1L) else c(1L, m)
  }
  list(x = dx, y = dy)
}

traced_product <- function(x, y, kind) {
  if (is_sparse(x) || is_sparse(y) || is_traced_sparse(x) || is_traced_sparse(y)) {
    return(sparse_product(x, y, kind))
  }
  x <- trace_operand(x)
  y <- trace_operand(y)
  dims <- product_dims(x, y, kind)
  dx <- if (kind == 1L) rev(dims$x) else dims$x
  dy <- if (kind == 2L) rev(dims$y) else dims$y
  if (dx[2L] != dy[1L]) trace_stop("non-conformable arguments", of_numbers = TRUE)
  m <- dx[1L]
  k <- dx[2L]
  n <- dy[2L]
  if (m * n == 0) return(no_elements(c(m, n)))
  if (k == 0L) return(matrix(0, m, n))
  result <- record("matmul", "", c(node_of(x), node_of(y)), c(m, k, n, kind == 1L, kind == 2L),
                   m * n, c(m, n))
  named(result, list(if (is.list(x$names)) x$names[[1L + (kind == 1L)]],
                     if (is.list(y$names)) y$names[[2L - (kind == 2L)]]))
}

traced_outer <- function(X, Y, FUN = "*", ...) {
  dx <- if (is.null(dim(X))) length(X) else dim(X)
  dy <- if (is.null(dim(Y))) length(Y) else dim(Y)
  FUN <- if (is.function(FUN)) FUN else FUN_named(FUN)
  if (identical(FUN, base::`*`)) {
    result <- traced_product(as.vector(X), as.vector(Y), 2L)
  } else {
    m <- length(X)
    n <- length(Y)
    result <- FUN(spread_by(X, m, n, 0), spread_by(Y, m, n, 1), ...)
    if (length(result) != m * n) trace_stop("dims do not match the length of the object")
  }
  labels <- if (is.null(dim(X)) && is.null(dim(Y))) list(labels_of(X), labels_of(Y))
  dim(result) <- c(dx, dy)
  named(result, labels)
}

FUN_named <- function(name) {
  known <- traced_functions()[[name]]
  if (is.null(known)) match.fun(name) else known
}

# A vector repeated to an m x n matrix: each column is x (by = 0), or each row is (by = 1).
spread_by <- function(x, m, n, by) {
  if (!is_traced(x)) {
    return(if (by == 0) rep(as.vector(x), times = n) else rep(as.vector(x), each = m))
  }
  if (m * n == 0) return(numeric())
  record("broadcast", "", node_of(x), c(m, n, by), m * n)
}

# ---- linear algebra -----------------------------------------------------------------------------

square_order <- function(x, name) {
  d <- dim(x)
  if (length(x) == 1L && is.null(d)) return(1L)
  if (length(d) != 2L || d[1L] != d[2L]) trace_stop(sprintf("'%s' must be a square matrix", name))
  d[1L]
}

matrix_of <- function(x, m, n) {
  dim(x) <- c(m, n)
  x
}

# op(r)^-1 x. If `r` is a transposed factor, the factor itself is used.
traced_tri_solve <- function(r, x, k, upper, transpose) {
  r <- trace_operand(r)
  vector <- is.null(dim(x))
  if (length(r$dim) != 2L && r$n != 1L) trace_stop("'r' must be a matrix")
  if (is.null(k)) k <- if (is.null(r$dim)) 1L else r$dim[2L]
  n <- as.integer(k)
  rows <- if (is.null(r$dim)) 1L else r$dim[1L]
  if (n > rows || n > length(r)) trace_stop("invalid 'k' argument")
  if (!vector && nrow(x) != n || vector && length(x) != n) {
    if (NROW(x) < n) trace_stop("non-conformable arguments")
    x <- if (vector) x[seq_len(n)] else x[seq_len(n), , drop = FALSE]
  }
  if (!is.null(r$dim) && any(r$dim != n)) r <- r[seq_len(n), seq_len(n), drop = FALSE]
  x <- trace_operand(x)
  columns <- if (vector) 1L else x$dim[2L]
  id <- node_of(r)
  node <- node_at(tracing$tape, id)
  if (node[[1L]] == "transpose") {
    id <- node[[3L]]
    upper <- !upper
    transpose <- !transpose
  }
  if (columns == 0L) return(no_elements(c(n, 0L)))
  record("tri_solve", "", c(id, node_of(x)), c(n, columns, upper, transpose), n * columns,
         if (!vector) c(n, columns))
}

traced_backsolve <- function(r, x, k = NULL, upper.tri = TRUE, transpose = FALSE) {
  traced_tri_solve(r, x, k, isTRUE(upper.tri), isTRUE(transpose))
}

traced_forwardsolve <- function(l, x, k = NULL, upper.tri = FALSE, transpose = FALSE) {
  traced_tri_solve(l, x, k, isTRUE(upper.tri), isTRUE(transpose))
}

traced_chol2inv <- function(x, size = NULL) {
  n <- if (!is.null(size)) as.integer(size) else if (is.null(dim(x))) 1L else ncol(x)
  if (!is.null(dim(x)) && any(dim(x) != n)) x <- x[seq_len(n), seq_len(n), drop = FALSE]
  half <- traced_backsolve(x, diag(n), transpose = TRUE)
  traced_product(half, half, 1L)
}

# Cofactors for up to three rows: the determinant, and the adjugate if `adjugate`.
cofactors <- function(a, n, adjugate = FALSE) {
  e <- function(i, j) a[[(j - 1L) * n + i]]
  if (n == 0L) return(list(det = 1))
  if (n == 1L) return(list(det = e(1, 1), adjugate = list(1)))
  if (n == 2L) {
    return(list(det = e(1, 1) * e(2, 2) - e(1, 2) * e(2, 1),
                adjugate = list(e(2, 2), -e(2, 1), -e(1, 2), e(1, 1))))
  }
  minor <- function(i, j) {
    i <- setdiff(1:3, i)
    j <- setdiff(1:3, j)
    e(i[1L], j[1L]) * e(i[2L], j[2L]) - e(i[1L], j[2L]) * e(i[2L], j[1L])
  }
  det <- e(1, 1) * minor(1, 1) - e(1, 2) * minor(1, 2) + e(1, 3) * minor(1, 3)
  if (!adjugate) return(list(det = det))
  all <- list()
  for (j in 1:3) for (i in 1:3) all <- c(all, list((-1)^(i + j) * minor(j, i)))
  list(det = det, adjugate = all)
}

#' @method solve cl_traced
#' @export
solve.cl_traced <- function(a, b, ...) traced_solve(a, if (!missing(b)) b)

traced_solve <- function(a, b) {
  n <- square_order(a, "a")
  if (!is.null(b) && NROW(b) != n) {
    trace_stop(sprintf("'b' (%d x %d) must be compatible with 'a' (%d x %d)", NROW(b), NCOL(b), n,
                       n))
  }
  if (n == 0L) return(no_elements(if (is.null(b)) c(0L, 0L) else dim(b)))
  if (is_sparse(a)) a <- as_traced_sparse(a)
  if (is_traced_sparse(a)) return(sparse_solution(a, b))
  if (!is_traced(a)) return(traced_product(solve(a), b, 0L)[, , drop = is.null(dim(b))])
  if (n > 3L) return(named(lu_solution(a, n, b), if (is.null(b)) rev(labels_of(a))))
  found <- cofactors(a, n, adjugate = TRUE)
  inverse <- combine_traced(found$adjugate) / found$det
  dim(inverse) <- c(n, n)
  if (is.null(b)) return(named(inverse, rev(labels_of(a))))
  result <- traced_product(inverse, if (is.null(dim(b))) matrix_of(b, length(b), 1L) else b, 0L)
  if (is.null(dim(b))) as.vector(result) else result
}

#' @export
determinant.cl_traced <- function(x, logarithm = TRUE, ...) {
  n <- square_order(x, "x")
  if (n > 3L) {
    factor <- lu_factor(x, n)
    size <- factor[n * (n + 1L) + 1L]
    if (!logarithm) size <- exp(size)
    sign <- factor[n * (n + 1L) + 2L]
  } else {
    det <- cofactors(x, n)$det
    size <- if (logarithm) log(abs(det)) else abs(det)
    sign <- sign(det)
  }
  structure(list(modulus = size, sign = sign), class = "det")
}

traced_det <- function(x, ...) {
  n <- square_order(x, "x")
  if (n <= 3L) return(cofactors(trace_operand(x), n)$det)
  parts <- determinant(x)
  parts$sign * exp(parts$modulus)
}

# The node of an LU factor in the layout of src/ops/lu.c, followed by log |det| and the sign.
lu_factor <- function(a, n) {
  size <- n * (n + 1L) + 2L
  record("lu", "", node_of(trace_operand(a)), n, size)
}

lu_solution <- function(a, n, b) {
  shape <- if (is.null(b)) c(n, n) else dim(b)
  b <- trace_operand(if (is.null(b)) diag(n) else b)
  if (b$n == 0L) return(no_elements(shape))
  record("lu_solve", "", c(node_of(lu_factor(a, n)), node_of(b)), c(n, b$n / n, 0), b$n, shape)
}

traced_diag <- function(x, nrow, ncol, names = TRUE) {
  if (is.null(dim(x)) && length(x) == 1L && missing(nrow)) {
    if (missing(ncol)) trace_stop("diag() of one traced number needs 'nrow'", choice = TRUE)
    nrow <- ncol
  }
  if (is_traced_sparse(x)) return(sparse_diagonal(x))
  if (!is.null(dim(x))) {
    other <- if (is_traced(x) && dim(x)[1L] == dim(x)[2L]) untransposed(x)
    return(move(base::diag, list(if (is.null(other)) x else named(other, rev(labels_of(x)))),
                names = names))
  }
  if (missing(nrow)) nrow <- if (missing(ncol)) length(x) else ncol
  # A diagonal of one number is a mask, which joins the kernel of the expression that it is added
  # to.
  if (length(x) == 1L) {
    return(traced_choice(base::diag(1, nrow, if (missing(ncol)) nrow else ncol), x, 0))
  }
  move(base::diag, list(x), nrow, if (missing(ncol)) nrow else ncol)
}

#' @export
scale.cl_traced <- function(x, center = TRUE, scale = TRUE) {
  x <- as.matrix(x)
  centred <- !isFALSE(center)
  if (isTRUE(center)) center <- traced_margin(x, 2L, TRUE, FALSE, 1L)
  if (centred) x <- traced_sweep(x, 2L, center)
  if (isFALSE(scale)) return(x)
  if (isTRUE(scale)) scale <- sqrt(traced_margin(x^2, 2L, FALSE, FALSE, 1L) / (nrow(x) - 1))
  traced_sweep(x, 2L, scale, `/`)
}

# ---- choices ------------------------------------------------------------------------------------

traced_ifelse <- function(test, yes, no) {
  if (!is_traced(test)) {
    test <- if (is.logical(test)) test else as.logical(test)
    if (length(test) == 1L && is.null(dim(test)) && !is.na(test)) {
      return((if (test) yes else no)[1L])
    }
  }
  shape <- dim(test)
  n <- length(test)
  cut <- function(x) if (length(x) > n) as.vector(x)[seq_len(n)] else as.vector(x)
  if (n == 0L) return(no_elements(shape))
  empty <- length(yes) == 0L || length(no) == 0L
  if (empty) trace_stop("'yes' and 'no' must have elements")
  values <- lapply(list(test, cut(yes), cut(no)), trace_operand)
  if (is_traced(test)) {
    values[[2L]] <- where_present(values[[2L]], values[[1L]], TRUE)
    values[[3L]] <- where_present(values[[3L]], values[[1L]], FALSE)
  } else {
    values[2:3] <- chosen(test, values[[2L]], values[[3L]])
  }
  named(apply_node("ifelse", values, n, shape), labels_of(test))
}

# Both operands of a choice that depends on data only; elements that are not chosen may be missing.
chosen <- function(test, yes, no) {
  force(yes) # adds data
  force(no)
  if (!tracing$tape$has_missing) return(list(yes, no))
  if (yes$n == length(test)) yes <- without_missing(yes, !(test %in% TRUE))
  if (no$n == length(test)) no <- without_missing(no, !(test %in% FALSE))
  list(yes, no)
}

traced_choice <- function(test, yes, no) {
  if (is_traced(test)) {
    return(trace_apply("ifelse", test, where_present(yes, test, TRUE),
                       where_present(no, test, FALSE)))
  }
  test <- test != 0
  both <- chosen(test, trace_operand(yes), trace_operand(no))
  trace_apply("ifelse", test, both[[1L]], both[[2L]])
}

traced_extremes <- function(op, values, na.rm) {
  values <- values[!vapply(values, is.null, NA)]
  result <- values[[1L]]
  for (x in values[-1L]) {
    if (!isTRUE(na.rm)) {
      result <- traced_binary(op, result, x)
    } else { # where one is missing, the result is the other
      last <- result
      result <- traced_binary(op, traced_binary("fill_nan", last, x),
                              traced_binary("fill_nan", x, last))
    }
  }
  result
}

# ---- sums by row and column ---------------------------------------------------------------------

traced_margin <- function(x, margin, mean, na.rm, dims) {
  if (is_traced_sparse(x)) return(sparse_margin(x, margin, mean))
  d <- dim(x)
  if (length(d) < 2L) trace_stop("'x' must be an array of at least two dimensions")
  dims <- as.integer(dims)
  m <- prod(d[seq_len(dims)])
  n <- prod(d[-seq_len(dims)])
  kept <- if (margin == 1L) d[seq_len(dims)] else d[-seq_len(dims)]
  count <- if (margin == 1L) m else n
  if (length(x) == 0L) return(if (mean) rep(NaN, count) else numeric(count))
  sums <- function(x) {
    record("reduce", "sum", node_for(trace_operand(x), m * n), c(m, n, margin), as.integer(count),
           if (length(kept) > 1L) kept)
  }
  number <- if (margin == 1L) n else m
  if (isTRUE(na.rm)) {
    found <- left_out(x, 0)
    x <- found$values
    if (mean) number <- number - sums(found$lost)
  }
  result <- if (mean) sums(x) / number else sums(x)
  if (length(kept) == 1L && length(d) == 2L) named(result, labels_of(x)[[margin]]) else result
}

traced_sweep <- function(x, MARGIN, STATS, FUN = "-", ...) {
  FUN <- if (is.function(FUN)) FUN else FUN_named(FUN)
  d <- dim(x)
  if (length(d) == 2L && length(MARGIN) == 1L && length(STATS) == d[MARGIN]) {
    other <- spread_by(as.vector(STATS), d[1L], d[2L], if (MARGIN == 1L) 0 else 1)
    dim(other) <- d
  } else {
    perm <- c(MARGIN, seq_along(d)[-MARGIN])
    other <- move(function(p) aperm(array(p, d[perm]), order(perm)), list(STATS))
  }
  FUN(x, other, ...)
}

# ---- functions over ranges ----------------------------------------------------------------------

# As sapply(): a vector or a matrix if all results have one length.
simplified <- function(values, higher = FALSE) {
  if (length(values) == 0L) return(list())
  if (!any(vapply(values, is_traced, NA))) return(simplify2array(values, higher))
  sizes <- vapply(values, length, 0L)
  if (any(sizes != sizes[1L]) || any(vapply(values, is.list, NA)) || sizes[1L] == 0L) return(values)
  result <- combine_traced(unname(values))
  shape <- dim(values[[1L]])
  higher <- higher && !is.null(shape) && all(vapply(lapply(values, dim), identical, NA, shape))
  if (sizes[1L] > 1L) dim(result) <- c(if (higher) shape else sizes[1L], length(values))
  first <- labels_of(values[[1L]])
  named(result, if (sizes[1L] == 1L) names(base::unlist(lapply(values, name_pattern)))
        else if (!higher) list(if (is.character(first)) first, names(values)))
}

as_items <- function(x) if (is_traced(x)) as.list(x) else x

mapped_sapply <- function(X, FUN, ..., simplify = TRUE, USE.NAMES = TRUE) {
  FUN <- match.fun(FUN)
  values <- lapply(X, FUN, ...)
  if (!any(vapply(values, is_traced, NA))) {
    if (USE.NAMES && is.character(X) && is.null(names(values))) names(values) <- X
    return(if (isFALSE(simplify)) values else simplify2array(values, simplify == "array"))
  }
  if (USE.NAMES && is.character(X) && is.null(names(values))) names(values) <- X
  if (isFALSE(simplify)) values else simplified(values, identical(simplify, "array"))
}

mapped_vapply <- function(X, FUN, FUN.VALUE, ..., USE.NAMES = TRUE) {
  FUN <- match.fun(FUN)
  if (is_traced(FUN.VALUE)) FUN.VALUE <- numeric(length(FUN.VALUE))
  values <- lapply(X, FUN, ...)
  mine <- vapply(values, is_traced, NA)
  if (!any(mine)) {
    if (USE.NAMES && is.character(X) && is.null(names(values))) names(values) <- X
    return(vapply(values, identity, FUN.VALUE, USE.NAMES = USE.NAMES))
  }
  wrong <- which(vapply(values, length, 0L) != length(FUN.VALUE))
  if (length(wrong) > 0L) {
    trace_stop(sprintf("values must be length %d, but FUN(X[[%d]]) result is length %d",
                       length(FUN.VALUE), wrong[1L], length(values[[wrong[1L]]])))
  }
  if (USE.NAMES && is.character(X) && is.null(names(values))) names(values) <- X
  simplified(if (USE.NAMES) values else unname(values))
}

mapped_mapply <- function(FUN, ..., MoreArgs = NULL, SIMPLIFY = TRUE, USE.NAMES = TRUE) {
  FUN <- match.fun(FUN)
  values <- do.call(base::mapply, c(list(FUN), lapply(list(...), as_items),
                                    list(MoreArgs = MoreArgs, SIMPLIFY = FALSE,
                                         USE.NAMES = USE.NAMES)), quote = TRUE)
  if (isFALSE(SIMPLIFY) || length(values) == 0L) values
  else if (any(vapply(values, is_traced, NA))) simplified(values)
  else simplify2array(values, higher = identical(SIMPLIFY, "array"))
}

mapped_Map <- function(f, ...) {
  f <- match.fun(f)
  do.call(base::Map, c(list(f), lapply(list(...), as_items)), quote = TRUE)
}

mapped_Reduce <- function(f, x, init, right = FALSE, accumulate = FALSE, simplify = TRUE) {
  f <- match.fun(f)
  x <- as_items(x)
  arguments <- list(f, x, right = right, accumulate = accumulate)
  if (!missing(init)) arguments$init <- init
  values <- do.call(base::Reduce, arguments, quote = TRUE)
  if (!accumulate || !simplify || !is.list(values)) return(values)
  if (any(vapply(values, is_traced, NA)) && all(vapply(values, length, 0L) == 1L)) {
    return(combine_traced(values))
  }
  values
}

# apply() of a plain X with a function that may return traced values.
mapped_apply <- function(X, MARGIN, FUN, ..., simplify = TRUE) {
  FUN <- match.fun(FUN)
  if (is_traced(X)) return(traced_apply(X, MARGIN, FUN, ...))
  found <- FALSE
  values <- base::apply(X, MARGIN, function(...) {
    value <- FUN(...)
    found <<- found || is_traced(value)
    value
  }, ...)
  if (found && is.list(values)) simplified(values) else values
}

traced_apply <- function(X, MARGIN, FUN, ...) {
  d <- dim(X)
  if (is.null(d) || !is.numeric(MARGIN) || !all(MARGIN %in% seq_along(d))) {
    trace_stop("apply() of a traced value takes a matrix or an array, and numbers for MARGIN")
  }
  places <- aperm(trace_positions(X), c(setdiff(seq_along(d), MARGIN), MARGIN))
  rest <- d[-MARGIN]
  dim(places) <- c(prod(rest), prod(d[MARGIN]))
  labels <- labels_of(X)
  values <- lapply(seq_len(ncol(places)), function(k) {
    slice <- unnamed(X[places[, k]])
    if (length(rest) > 1L) dim(slice) <- rest
    FUN(named(slice, if (length(rest) == 1L) labels[-MARGIN][[1L]] else labels[-MARGIN]), ...)
  })
  if (length(MARGIN) == 1L) names(values) <- labels[[MARGIN]]
  values <- simplified(values)
  if (length(MARGIN) > 1L && !is.list(values)) {
    dim(values) <- c(if (length(values) > ncol(places)) length(values) / ncol(places), d[MARGIN])
  }
  values
}

# A sequence of `length.out` numbers.
traced_seq <- function(...) {
  if (!any_traced(...)) return(base::seq(...))
  given <- match.call(base::seq.default, as.call(c(list(quote(seq)), list(...))))
  if (!is.null(tracing$tape$live) || is.null(given$length.out) || !is.null(given$by) ||
      is_traced(given$length.out) || is.null(given$from) || is.null(given$to)) {
    return(deciding("seq", base::seq)(...))
  }
  n <- ceiling(given$length.out)
  given$from + (given$to - given$from) * ((seq_len(n) - 1) / max(1, n - 1))
}

contains_traced <- function(x) {
  is_traced(x) || is.list(x) && !is.data.frame(x) && any(vapply(x, contains_traced, NA))
}

# The square root, with derivative 0 at 0.
safe_root <- function(x) {
  positive <- x > 0
  sqrt(trace_apply("ifelse", positive, x, 1)) * positive
}
