# Terms of mixed models as latent values u of a known structure: those of (x | g), and fields. A
# term is a list of
#   label, kind, size    the number of its latent values
#   start, lower, names  of its parameters, which the functions below take as a vector that may be
#                        traced; `names`: of what shown() gives, as spread_errors() has them
#   scales(par)          a list of factors
#   parts                its part of the linear predictor is the sum over these of
#                        scales[[k]] * weight * u[at]
#   rows                 list(i, j, values(par), count): D, by elements; u has the density of a
#                        normal vector with precision D'D
#   log_det(par)         of D'D, without the eigenvalues that are 0
#   rank, free           of D'D; dimensions in which u has no density and no constraint
#   held                 list of the values of u, by number, whose sum is 0
#   null                 size x free: a basis of the directions without a density
#   shown(par)           standard deviations and other parameters on their natural scale
#   effects              list(labels, parts): the effects of which ranef() tells, as `parts`
#   locate(frame)        parts at other data

# The calls of fields with the values of what is not data: list(kind, label, data, given).
read_fields <- function(formula) {
  lapply(field_calls(formula[[3L]]), function(e) {
    arguments <- read_field(e)
    own <- names(arguments) %in% of_data
    given <- lapply(arguments[!own], function(a)
      classed(eval(a, environment(formula)), "formula"))
    list(kind = as.character(e[[1L]]), label = deparse1(e), data = arguments[own], given = given)
  })
}

# The same with `values`, those of the variables.
fields_of_frame <- function(fields, frame) {
  lapply(fields, function(field) c(field, list(values = field_values(field, frame))))
}

field_values <- function(field, frame, argument = "formula") {
  lapply(field$data, function(e) {
    value <- frame[[deparse1(field_variable(e))]]
    if (is.null(value) || anyNA(value)) {
      abort_argument(argument, sprintf("'%s': '%s' has missing values", field$label, deparse1(e)))
    }
    value
  })
}

# `unit`: of the linear predictor, for starting values.
field_term <- function(field, unit) {
  build <- switch(field$kind, car = areal_term, spde = spde_term, index_term)
  values <- field$values
  term <- build(field, values)
  term$label <- field$label
  term$kind <- field$kind
  usual <- log(unit / 2 / term$spread)
  term$start[1L] <- usual
  term$lower <- replace(rep(-Inf, length(term$start)), 1L, usual - log(5e3))
  rest <- if (is.null(term$others)) character() else paste0(term$others, "|", field$label)
  term$names <- c(paste0("sd_", term$what, "|", field$label), rest)
  term$locate <- function(frame) {
    term_points(term, field_values(field, frame, "newdata"), "newdata")
  }
  if (is.null(term$scales)) term$scales <- function(par) list(exp(par[1L]))
  term$parts <- term_points(term, values, "formula")
  term$effects$parts <- lapply(term$effects$parts, c, list(i = seq_along(term$effects$labels)))
  term
}

term_points <- function(term, values, argument) {
  fail <- function(text) abort_argument(argument, sprintf("'%s': %s", term$label, text))
  term$find(values, fail)
}

# ---- along an index ------------------------------------------------------------------------------

# The rows of D in each group: sum of coefficients[k] * u[t + 1 - k].
lag_coefficients <- function(field) {
  switch(field$kind, rw1 = c(1, -1), rw2 = c(1, -2, 1), ar1 = c(1, -1),
         seasonal = rep(1, check_period(field)))
}

check_period <- function(field) {
  period <- field$given$period
  if (is.numeric(period) && length(period) == 1L && is.finite(period) && period >= 2 &&
        period == round(period)) return(period)
  given <- if (is.numeric(period) && length(period) == 1L) format(period) else describe(period)
  abort_argument("formula", sprintf("'%s': 'period' must be a whole number from 2 on, not %s",
                                    field$label, given))
}

index_term <- function(field, values) {
  fail <- function(text) abort_argument("formula", sprintf("'%s': %s", field$label, text))
  times <- index_values(field, values$index, fail)
  groups <- if (is.null(values$group)) NULL else levels(droplevels(as.factor(values$group)))
  count <- length(times)
  copies <- max(length(groups), 1L)
  coefficients <- lag_coefficients(field)
  lag <- length(coefficients) - 1L
  if (count <= lag) fail(sprintf("the index must have %d or more values, not %d", lag + 1L, count))
  each <- function(v) as.vector(outer(v, (seq_len(copies) - 1L) * count, `+`))
  behind <- seq_len(count - lag) + lag
  n <- length(behind) * copies
  autoregressive <- field$kind == "ar1"
  first <- each(1L)
  rows <- list(i = rep(seq_len(n), lag + 1L),
               j = unlist(lapply(0:lag, function(k) each(behind - k))), count = n)
  weights <- rep(coefficients, each = n)
  rows$values <- function(par) weights
  if (autoregressive) {
    rows <- list(i = c(rows$i, n + seq_len(copies)), j = c(rows$j, first), count = n + copies)
    which <- c(rep(1:2, each = n), rep(3L, copies))
    rows$values <- function(par) {
      rho <- tanh(par[2L])
      root <- sqrt(1 - rho * rho)
      c(1 / root, -rho / root, 1)[which]
    }
  }
  null <- lag_null(coefficients, count)
  constant <- if (!autoregressive) copies * as.numeric(determinant(crossprod(null))$modulus)
  # directions without a density, less the constant of which the sums of 0 take care
  free <- if (autoregressive) 0L else lag - (field$kind %in% c("rw1", "rw2"))
  labels <- as.character(times)
  if (!is.null(groups)) labels <- as.vector(outer(labels, groups, paste, sep = ":"))
  find <- function(values, fail) {
    t <- match(if (is.factor(values$index)) as.character(values$index) else values$index, times)
    if (anyNA(t)) {
      fail(sprintf("the index %s is not among its values, which end at %s: see ?cl_glmm",
                   format(values$index[is.na(t)][1L]), format(times[count])))
    }
    g <- if (is.null(groups)) 1L else match(as.character(values$group), groups)
    if (anyNA(g)) fail(sprintf("there is no group \"%s\"", values$group[is.na(g)][1L]))
    list(list(at = t + (g - 1L) * count, weight = 1, k = 1L))
  }
  list(size = count * copies, start = c(0, if (autoregressive) 0.5), rows = rows, find = find,
       log_det = if (autoregressive) {
         function(par) -n * log(1 - tanh(par[2L])^2)
       } else function(par) constant,
       rank = rows$count, free = free * copies,
       held = if (field$kind %in% c("rw1", "rw2")) lapply(first, function(k) k - 1L +
                                                             seq_len(count)),
       null = if (free > 0L) {
         null <- if (field$kind == "rw2") matrix(seq_len(count) - (count + 1) / 2) else null
         kronecker(diag(copies), null)
       },
       spread = switch(field$kind, rw1 = sqrt(count / 6), rw2 = count^1.5 / 20, 1),
       what = switch(field$kind, rw1 = "increment", rw2 = "second difference", ar1 = "marginal",
                     seasonal = "innovation"),
       others = if (autoregressive) "rho",
       shown = function(par) c(exp(par[1L]), if (autoregressive) tanh(par[2L])),
       effects = list(labels = labels, parts = list(list(at = seq_len(count * copies), weight = 1,
                                                         k = 1L))))
}

# The sequences on which the coefficients give 0, by their first elements.
lag_null <- function(coefficients, count) {
  lag <- length(coefficients) - 1L
  null <- matrix(0, count, lag)
  null[seq_len(lag), ] <- diag(lag)
  for (t in seq_len(count)[-seq_len(lag)]) {
    null[t, ] <- -coefficients[-1L] %*% null[t - seq_len(lag), , drop = FALSE]
  }
  null
}

# All values that the index may have, in order.
index_values <- function(field, index, fail) {
  values <- field$given$values
  if (is.factor(index)) {
    if (!is.null(values)) fail("'values' is for an index of numbers: a factor has its levels")
    return(levels(index))
  }
  whole <- function(v) is.numeric(v) && is.null(dim(v)) && all(is.finite(v)) && all(v == round(v))
  if (!whole(index)) fail("the index must be a factor or whole numbers")
  if (is.null(values)) {
    ends <- range(index)
    if (diff(ends) > 1e5 + 100 * length(index)) {
      fail(sprintf(paste("there are too many numbers from %s to %s, each of which has an effect:",
                         "divide the index by its steps, or make it a factor"),
                   format(ends[1L]), format(ends[2L])))
    }
    return(seq(ends[1L], ends[2L]))
  }
  if (!whole(values) || any(diff(values) != 1)) fail("'values' must be consecutive whole numbers")
  values
}

# ---- areas ---------------------------------------------------------------------------------------

areal_term <- function(field, values) {
  fail <- function(text) abort_argument("formula", sprintf("'%s': %s", field$label, text))
  type <- if (is.null(field$given$type)) "icar" else
    check_choice(field$given$type, c("icar", "car", "bym2"), "type")
  graph <- read_graph(field$given$graph, fail)
  n <- graph$n
  edges <- length(graph$i)
  root <- sqrt(graph$w)
  rows <- list(i = rep(seq_len(edges), 2L), j = c(graph$i, graph$j), count = edges)
  proper <- type == "car"
  both <- type == "bym2"
  if (proper) {
    rows <- list(i = c(rows$i, edges + seq_len(n)), j = c(rows$j, seq_len(n)), count = edges + n)
    size <- sqrt(graph$degree)
    rows$values <- function(par) {
      rho <- share_of(par[2L])
      c(sqrt(rho) * c(root, -root), sqrt(1 - rho) * size)
    }
  } else {
    if (both) rows <- list(i = c(rows$i, edges + seq_len(n)), j = c(rows$j, n + seq_len(n)),
                           count = edges + n)
    known <- c(root, -root, rep(1, n * both))
    rows$values <- function(par) known
  }
  find <- function(values, fail) {
    at <- match(as.character(values$area), graph$labels)
    if (anyNA(at)) fail(sprintf("the area \"%s\" is not in the graph",
                                as.character(values$area)[is.na(at)][1L]))
    if (!both) return(list(list(at = at, weight = 1, k = 1L)))
    list(list(at = at, weight = 1 / spread[graph$part[at]], k = 1L),
         list(at = at + n, weight = 1, k = 2L))
  }
  intrinsic <- if (!proper) intrinsic_parts(graph)
  spread <- intrinsic$spread
  list(size = n * (1L + both), start = c(0, if (proper) 2 else if (both) 0), rows = rows,
       find = find, held = if (!proper) unname(split(seq_len(n), graph$part)),
       log_det = if (proper) proper_log_det(graph) else function(par) intrinsic$log_det,
       rank = if (proper) n else n - max(graph$part) + n * both, free = 0L,
       spread = if (both) 1 else 1 / sqrt(mean(graph$degree)),
       what = if (both) "marginal" else "conditional",
       others = if (proper) "rho" else if (both) "phi",
       shown = function(par) c(exp(par[1L]), if (type != "icar") share_of(par[2L])),
       scales = if (both) function(par) {
         phi <- share_of(par[2L])
         list(exp(par[1L]) * sqrt(phi), exp(par[1L]) * sqrt(1 - phi))
       },
       effects = list(labels = graph$labels,
                      parts = find(list(area = graph$labels), fail)))
}

share_of <- function(v) 1 / (1 + exp(-v))

# list(n, labels, i, j, w: of the edges, i < j; degree: sums of weights; part: the component of each
# area), from a matrix or a list of neighbours.
read_graph <- function(graph, fail) {
  if (!is.null(graph) && length(graph) == 0L) fail("'graph' has no areas")
  if (is.list(graph) && !is.data.frame(graph)) {
    n <- length(graph)
    labels <- if (!is.null(attr(graph, "region.id"))) attr(graph, "region.id") else names(graph)
    to <- lapply(graph, function(v) if (is.character(v)) match(v, labels) else v[v != 0])
    i <- rep(seq_len(n), lengths(to))
    j <- unlist(to, use.names = FALSE)
    if (!is.numeric(j) || anyNA(j) || any(j < 1 | j > n | j != round(j))) {
      fail(sprintf("the neighbours in 'graph' must be numbers from 1 to %d", n))
    }
    w <- rep(1, length(i))
  } else {
    if (!(is.matrix(graph) && (is.numeric(graph) || is.logical(graph))) &&
          !inherits(graph, "Matrix")) {
      fail(sprintf("'graph' must be a matrix or a list of neighbours, not %s", describe(graph)))
    }
    if (nrow(graph) != ncol(graph)) fail("'graph' must be a square matrix")
    n <- nrow(graph)
    labels <- rownames(graph)
    if (is.matrix(graph)) {
      at <- which(graph != 0 | is.na(graph), arr.ind = TRUE)
      i <- at[, 1L]
      j <- at[, 2L]
      w <- as.double(graph[at])
    } else {
      if (!inherits(graph, "dMatrix")) graph <- graph * 1
      plain <- plain_sparse(graph)
      i <- plain$i[plain$x != 0] + 1L
      j <- plain$j[plain$x != 0] + 1L
      w <- plain$x[plain$x != 0]
    }
    if (!all(is.finite(w)) || any(w < 0)) fail("'graph' must have numbers from 0 on")
  }
  if (any(i == j)) fail(sprintf("area %s is a neighbour of itself", i[i == j][1L]))
  key <- i + j * (n + 1)
  back <- match(j + i * (n + 1), key)
  off <- which(is.na(back) | w != w[back])
  if (length(off) > 0L) {
    fail(sprintf("'graph' is not symmetric, as at %d and %d", i[off[1L]], j[off[1L]]))
  }
  if (is.null(labels)) labels <- as.character(seq_len(n))
  labels <- as.character(labels)
  if (anyDuplicated(labels)) fail("the areas of 'graph' must have unique names")
  degree <- as.vector(base::rowsum(c(w, numeric(n)), c(i, seq_len(n))))
  alone <- which(degree == 0)
  if (length(alone) > 0L) {
    fail(sprintf("area \"%s\" has no neighbours: give it one, or leave it out of 'graph'",
                 labels[alone[1L]]))
  }
  up <- i < j
  part <- graph_parts(n, i[up], j[up])
  list(n = n, labels = labels, i = i[up], j = j[up], w = w[up], degree = degree, part = part)
}

# The components: each area takes the lowest number among its own and those of its neighbours.
graph_parts <- function(n, i, j) {
  part <- seq_len(n)
  repeat {
    low <- pmin(part[i], part[j])
    new <- part
    for (k in list(i, j)) {
      by <- order(k, low)
      first <- by[!duplicated(k[by])]
      new[k[first]] <- pmin(new[k[first]], low[first])
    }
    new <- new[new]
    if (identical(new, part)) return(match(part, sort(unique(part))))
    part <- new
  }
}

# A sparse factor of the matrix with these elements of its lower triangle; duplicates are added.
# list(handle, i, j).
numeric_factor <- function(i, j, x, n) {
  key <- j * as.double(n) + i
  sums <- base::rowsum(x, key)
  key <- as.double(rownames(sums))
  column <- (key - 1) %/% n
  handle <- .Call(r_sparse_analyse, c(0, cumsum(tabulate(column, n))),
                  as.integer(key - column * n - 1), NULL)
  bad <- .Call(r_sparse_factorize, handle, as.double(sums), 0)
  if (bad > 0) statcl_abort("not_pd", "a matrix of a field is not positive definite", order = bad)
  list(handle = handle, diagonal = which(key - column * n == column))
}

# Of the Laplacian of a graph: list(log_det: of its nonzero eigenvalues; spread: for each component
# the geometric mean of the standard deviations, the roots of the diagonal of the generalised
# inverse). Without one area of each component it is positive definite.
intrinsic_parts <- function(graph) {
  n <- graph$n
  sizes <- tabulate(graph$part)
  kept <- duplicated(graph$part)
  number <- replace(integer(n), kept, seq_len(sum(kept)))
  m <- sum(kept)
  inside <- kept[graph$i] & kept[graph$j]
  a <- number[graph$i[inside]]
  b <- number[graph$j[inside]]
  f <- numeric_factor(c(pmax(a, b), seq_len(m)), c(pmin(a, b), seq_len(m)),
                      c(-graph$w[inside], graph$degree[kept]), m)
  log_det <- .Call(r_sparse_log_det, f$handle) + sum(log(sizes))
  # its generalised inverse is that of this factor with rows and columns centred
  part <- graph$part[kept]
  own <- .Call(r_sparse_inverse, f$handle)[f$diagonal]
  means <- .Call(r_sparse_solve, f$handle, rep(1, m)) / sizes[part]
  total <- as.vector(base::rowsum(means, part)) / sizes
  variance <- numeric(n)
  variance[kept] <- own - 2 * means
  variance <- variance + total[graph$part]
  list(log_det = log_det,
       spread = exp(as.vector(base::rowsum(log(variance), graph$part)) / sizes / 2))
}

# log(det(M - rho W)).
proper_log_det <- function(graph) {
  n <- graph$n
  i <- c(graph$i, graph$j, seq_len(n)) - 1L
  j <- c(graph$j, graph$i, seq_len(n)) - 1L
  by <- order(j, i)
  edge <- c(graph$w, graph$w, numeric(n))[by]
  own <- c(numeric(2 * length(graph$i)), graph$degree)[by]
  i <- i[by]
  j <- j[by]
  function(par) {
    traced_log_det(new_sparse(own - share_of(par[2L]) * edge, i, j, c(n, n), TRUE))
  }
}
