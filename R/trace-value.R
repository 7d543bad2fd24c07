# Values of nodes computed by plain R, for cl_gradient(retrace = TRUE), where comparisons have the
# values of the call.

# The value of a traced value, with its dimensions.
live_value <- function(x) {
  tape <- x$tape
  if (is.null(x$from)) {
    value <- rep_len(live_node(tape, x$id), x$n)
  } else {
    value <- vapply(seq_len(x$n), function(k) live_node(tape, x$from[k])[x$index[k]], 0)
  }
  dim(value) <- x$dim
  value
}

# Values so far are kept on the tape. While more are added, the list has no other owner, which would
# have it copied for each.
live_node <- function(tape, id) {
  values <- tape$values
  first <- length(values) + 1L
  if (id < first) return(values[[id]])
  tape$values <- NULL
  on.exit(tape$values <- values)
  suppressWarnings(for (k in first:id) {
    node <- node_at(tape, k)
    values[[k]] <- as.double(live_result(node, values[node[[3L]]], tape))
  })
  values[[id]]
}

live_result <- function(node, args, tape) {
  at <- node[[4L]]
  x <- if (length(args) > 0L) args[[1L]]
  switch(node[[1L]],
    param = tape$live[at[1L] + seq_len(at[2L])],
    data = tape$data[[at[1L]]],
    number = node[[5L]],
    apply = do.call(core_numbers, c(node[[2L]], args)),
    broadcast = if (at[3L] == 0) rep(x, times = at[2L]) else rep(x, each = at[1L]),
    transpose = t(matrix(x, at[1L], at[2L])),
    part = matrix(x, at[1L])[at[2L] + seq_len(at[4L]), at[3L] + seq_len(at[5L])],
    gather = x[tape$data[[at[1L]]] + 1],
    concat = unlist(args),
    reduce = live_reduce(node[[2L]], matrix(x, at[1L], at[2L]), at[3L]),
    cumsum = apply(matrix(x, at[1L], at[2L]), 2L, cumsum),
    matmul = live_product(x, args[[2L]], at),
    scan = live_scan(at, args, tape),
    chol = live_chol(matrix(x, at[1L])),
    lu = live_lu(matrix(x, at[1L])),
    lu_solve = tryCatch(solve.default(live_square(x, at[1L], at[3L]),
                                      matrix(args[[2L]], at[1L], at[2L]), tol = 0),
                        error = function(e) args[[2L]] * NaN),
    tri_solve = backsolve(matrix(x, at[1L], at[1L]), matrix(args[[2L]], at[1L], at[2L]),
                          upper.tri = at[3L] == 1, transpose = at[4L] == 1),
    sparse_log_det = , sparse_solve = , sparse_root = live_sparse(node[[1L]], args, at, tape),
    live_call(node[[1L]], args, at))
}

# Of other operations of the core's table.
live_call <- function(op, args, at) {
  rows <- 2L * seq_along(args) - 1L
  operands <- Map(matrix, args, at[rows], at[rows + 1L])
  tryCatch(.Call(r_op, op, operands, at[-seq_len(2L * length(args))], -1L),
           error = function(e) NaN)
}

live_reduce <- function(op, x, margin) {
  f <- get(op, baseenv())
  if (margin == 0) f(x) else apply(x, margin, f)
}

live_product <- function(a, b, at) {
  a <- if (at[4L]) t(matrix(a, at[2L], at[1L])) else matrix(a, at[1L], at[2L])
  b <- if (at[5L]) t(matrix(b, at[3L], at[2L])) else matrix(b, at[2L], at[3L])
  a %*% b
}

# The matrix itself represents its factor.
live_lu <- function(a) {
  det <- determinant(a)
  c(a, numeric(nrow(a)), det$modulus, det$sign)
}

live_square <- function(x, n, transpose) {
  a <- matrix(x[seq_len(n * n)], n)
  if (transpose == 1) t(a) else a
}

live_chol <- function(a) {
  tryCatch(t(chol.default(t(a))), error = function(e) a * NaN)
}

# The core's own value of op at plain numbers, which are recycled.
core_numbers <- function(op, ...) {
  n <- common_length(...)
  operands <- lapply(list(...), function(x) rep_len(as.double(x), n))
  value <- .Call(r_expr_numbers, op, operands)
  dim(value) <- shape_of_longest(n, ...)
  value
}

number_ops <- list(
  square = function(a) a * a,
  round = function(a) round(a),
  is_infinite = function(a) is.infinite(a),
  inv_logit = function(a) stats::plogis(a),
  log1p_exp = function(a) -stats::plogis(-a, log.p = TRUE),
  log1m_exp = function(a) {
    suppressWarnings(plain_where(a > -0.693, log(-expm1(a)), log1p(-exp(a))))
  },
  dnorm = function(a) stats::dnorm(a),
  pnorm = function(a) stats::pnorm(a),
  log_pnorm = function(a) stats::pnorm(a, log.p = TRUE),
  qnorm = function(a) suppressWarnings(stats::qnorm(a)),
  log_qnorm = function(a) suppressWarnings(stats::qnorm(a, log.p = TRUE)),
  lbeta = function(a, b) suppressWarnings(base::lbeta(a, b)),
  choose = function(a, b) base::choose(a, b),
  lchoose = function(a, b) suppressWarnings(base::lchoose(a, b)),
  atan2 = function(a, b) base::atan2(a, b),
  pmin = function(a, b) base::pmin(a, b),
  bessel_k_scaled = function(a, b) base::besselK(a, ifelse(is.finite(b), b, NaN), TRUE),
  log_pgamma = function(a, b) suppressWarnings(stats::pgamma(a, b, log.p = TRUE)),
  log_qgamma = function(a, b) {
    suppressWarnings(stats::pgamma(a, b, lower.tail = FALSE, log.p = TRUE))
  },
  log_pbeta = function(a, b, c) suppressWarnings(stats::pbeta(a, b, c, log.p = TRUE)),
  log_qbeta = function(a, b, c) {
    suppressWarnings(stats::pbeta(a, b, c, lower.tail = FALSE, log.p = TRUE))
  })

# The length of the result of arithmetic on all arguments.
common_length <- function(...) {
  n <- 1L
  for (k in seq_len(...length())) {
    m <- size_of(...elt(k))
    if (m == 0L) return(0L)
    if (m > n) n <- m
  }
  n
}

size_of <- function(x) if (is_traced(x)) .subset2(x, "n") else length(x)

# The shape of the first argument of length n that has one.
shape_of_longest <- function(n, ...) {
  for (x in list(...)) if (!is.null(dim(x)) && length(x) == n) return(dim(x))
  NULL
}

plain_where <- function(condition, yes, no) {
  n <- common_length(condition, yes, no)
  shape <- shape_of_longest(n, condition, yes, no)
  condition <- rep_len(as.logical(condition), n)
  value <- rep_len(as.double(no), n)
  held <- which(condition)
  value[held] <- rep_len(as.double(yes), n)[held]
  value[is.na(condition)] <- NaN
  dim(value) <- shape
  value
}
