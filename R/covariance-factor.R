# Kernels of factors: levels are codes 1, 2, ... in a column of x.

#' Kernels of factors, and of several outputs
#'
#' Covariances between the levels of factors, for mixed inputs and for several outputs. Multiplied
#' with a kernel of numeric columns, a kernel of the factor that names the output of an observation
#' gives the model of coregionalisation: `cl_gp(value ~ x + output, data, kernel =
#' k_factor("output", "low_rank") * k_matern52(columns = "x"))`.
#'
#' | type | covariance |
#' |---|---|
#' | `"exchangeable"` | sd^2 exp(-sum_c (1 / lengthscale_c where the levels differ)) |
#' | `"gower"` | sd^2 exp(-sum_c d_c / lengthscale_c), d_c = abs(x_c - x'_c), of factors 0 or 1 |
#' | `"low_rank"` | sum_r a_r\[level\] a_r\[level'\], plus own\[level\]^2 for equal levels |
#'
#' With `"exchangeable"` all pairs of levels of a factor have the same correlation, exp(-1 /
#' lengthscale), between 0 and 1. `"low_rank"` is for one factor, and has `rank` loadings a of any
#' sign (parameters `load.level`) and a standard deviation of its own (`own.level`) for each level:
#' with enough ranks it can be any covariance matrix of the levels.
#'
#' In a fit, `"gower"` has one lengthscale for each column, unless `ard = FALSE`. A fit turns
#' factors, strings and logical values in the columns that these kernels name into codes. All other
#' kernels with `columns = NULL` then use the other columns. A factor that no kernel names becomes
#' indicator columns, as in linear models. [cl_cov()] and [cl_gp_likelihood()] take codes, whole
#' numbers from 1.
#'
#' @param columns Names or numbers of the columns.
#' @param type The covariance, see above.
#' @param sd,lengthscale As in [kernels]: one lengthscale for all columns, or one for each. For
#'   `"low_rank"`, `sd` is the first value of all loadings and standard deviations.
#' @param rank The number of loadings of each level.
#' @param levels For `"low_rank"`: names of the levels, or their number. A fit finds them in the
#'   data.
#' @return A kernel, see [kernels]. `"low_rank"` works as [k_user()] does: by matrices, without
#'   Vecchia's approximation.
#' @section Errors:
#' `statcl_error_argument` for arguments of the wrong kind, for `"low_rank"` with several columns,
#' and for codes that are not whole numbers from 1 to the number of levels.
#' @seealso [kernels]
#' @export
#' @examples
#' # A level of its own for each number of cylinders, with a common curve
#' fit <- cl_gp(mpg ~ wt + cyl, transform(mtcars, cyl = factor(cyl)), starts = 1,
#'              kernel = k_matern52() + k_factor("cyl"))
#' fit
#' predict(fit, data.frame(wt = 3, cyl = c("4", "8")))
#'
#' # Two outputs that share a process
#' d <- data.frame(x = rep(1:15 / 5, 2), output = rep(c("a", "b"), each = 15))
#' d$value <- sin(3 * d$x) * ifelse(d$output == "a", 1, -2)
#' both <- cl_gp(value ~ x + output, d[-20, ], starts = 1, mean = 0,
#'               kernel = k_factor("output", "low_rank") * k_exp_quad(columns = "x"))
#' predict(both, d[20, ])
k_factor <- function(columns, type = c("exchangeable", "low_rank", "gower"), sd = 1,
                     lengthscale = 1, rank = 1, levels = NULL) {
  type <- check_choice(type, c("exchangeable", "low_rank", "gower"), "type")
  columns <- check_columns(columns)
  if (is.null(columns)) abort_argument("columns", "'columns' must name the columns of the factors")
  if (type == "low_rank") {
    if (length(columns) != 1L) abort_argument("columns", "type \"low_rank\" is for one factor")
    if (is.null(levels)) levels <- 1L
    return(low_rank_kernel(columns, check_positive(sd, "sd"), check_count(rank, "rank", 1),
                           if (length(levels) > 1L) as.character(levels) else
                             check_count(levels, "levels", 1)))
  }
  kernel <- stationary_kernel("gower", sd, lengthscale, columns)
  kernel$terms[[1L]]$factors <- if (type == "exchangeable") columns else columns[0L]
  kernel$terms[[1L]]$mixed <- type == "gower"
  kernel
}

# Which columns of a term contain codes.
factor_columns <- function(term, p, names) {
  if (length(term$factors) == 0L) integer() else find_columns(term$factors, p, names)
}

low_rank_kernel <- function(column, sd, rank, levels) {
  names <- if (is.character(levels)) levels else as.character(seq_len(levels))
  count <- length(names)
  codes <- function(x) {
    code <- round(as.vector(as.matrix(x[, column])))
    if (anyNA(code) || any(code < 1 | code > count)) {
      abort_argument("x", sprintf("column '%s' must have codes of levels, 1 to %d", column, count))
    }
    code
  }
  indicators <- function(x) {
    z <- diag(count)[codes(x), , drop = FALSE]
    if (is_cl(x)) as_cl(z) else z
  }
  loadings <- function(par) matrix(par[seq_len(count * rank)], count)
  f <- function(x1, x2, par) {
    b <- tcrossprod(loadings(par)) + diag(par[-seq_len(count * rank)]^2, count)
    if (!is_cl(x1)) return(b[codes(x1), codes(x2), drop = FALSE])
    as_cl(b[codes(x1), , drop = FALSE]) %*% t(indicators(x2))
  }
  adjoint <- function(k_adj, x1, x2, par) {
    by <- as.matrix(crossprod(indicators(x1), k_adj %*% indicators(x2)))
    c((by + t(by)) %*% loadings(par), 2 * par[-seq_len(count * rank)] * diag(by))
  }
  a <- outer(seq_len(count), seq_len(rank), function(i, r) ifelse(i %% r == 0, sd, -sd))
  par <- stats::setNames(c(a, rep(sd, count)), c(
    paste0("load.", names, if (rank > 1L) paste0(":", rep(seq_len(rank), each = count))),
    paste0("own.", names)))
  kernel <- k_user(f, par, positive = rep(c(FALSE, TRUE), c(count * rank, count)))
  kernel$terms[[1L]][c("adjoint", "columns", "factors", "rank")] <- list(adjoint, column, column,
                                                                        rank)
  kernel
}

# The variables that factor kernels name.
factor_names <- function(kernel) {
  terms <- Filter(function(term) !is.null(term$factors), kernel$terms)
  unique(unlist(lapply(terms, function(term) if (is.character(term$columns)) term$columns)))
}

# The levels of the variables among them that are factors, strings or logical values in a data
# frame.
factor_levels <- function(kernel, data, xlevels = NULL) {
  found <- Filter(function(name) is_factor_like(data[[name]]),
                  intersect(factor_names(kernel), names(data)))
  sapply(found, function(name) {
    if (is.null(xlevels[[name]])) levels_of(data[[name]]) else xlevels[[name]]
  }, simplify = FALSE)
}

is_factor_like <- function(v) is.factor(v) || is.character(v) || is.logical(v)

levels_of <- function(v) if (is.factor(v)) levels(v) else as.character(sort(unique(v)))

# Codes of values; an error for other levels.
level_codes <- function(v, levels, name, argument) {
  code <- match(as.character(v), levels)
  lost <- which(is.na(code) & !is.na(v))
  if (length(lost) > 0L) {
    abort_argument(argument, sprintf(
      "'%s' has the level '%s', which is not among those of the fit: %s", name,
      as.character(v)[lost[1L]], paste(levels, collapse = ", ")))
  }
  code
}

# A data frame with codes in the columns `coded`, a list of levels by name.
code_columns <- function(x, coded, argument) {
  for (name in intersect(names(coded), names(x))) {
    x[[name]] <- level_codes(x[[name]], coded[[name]], name, argument)
  }
  x
}

# The kernel of a fit: marks the columns that are factors (also those in `coded`, a list of levels
# by name), gives the other columns to the other kernels, and one lengthscale to each column.
resolve_kernel <- function(kernel, x, coded, ard, size) {
  names <- colnames(x)
  p <- NCOL(x)
  taken <- integer()
  for (i in seq_along(kernel$terms)) {
    term <- kernel$terms[[i]]
    if (is.null(term$factors)) next
    if (isTRUE(term$mixed)) {
      used <- find_columns(term$columns, p, names)
      term$factors <- term$columns[names[used] %in% names(coded)]
      if (ard && length(term$lengthscale) == 1L) {
        term$lengthscale <- rep(term$lengthscale, length(used))
      }
    }
    at <- factor_columns(term, p, names)
    taken <- c(taken, at)
    kernel$terms[[i]] <- if (is.null(term$rank)) term else {
      levels <- coded[[names[at]]]
      if (is.null(levels)) levels <- max(1, x[, at])
      low_rank_kernel(term$columns, size, term$rank, levels)$terms[[1L]]
    }
  }
  rest <- setdiff(seq_len(p), taken)
  for (i in seq_along(kernel$terms)) {
    term <- kernel$terms[[i]]
    if (!is.null(term$columns) || term$type %in% c(plain_types, "user")) next
    if (length(rest) == 0L) {
      abort_argument("kernel",
                     "all inputs are factors, so that a kernel without 'columns' has none")
    }
    if (length(taken) > 0L) kernel$terms[[i]]$columns <- if (is.null(names)) rest else names[rest]
    if (ard && is.null(term$distance) && length(term$lengthscale) == 1L) {
      kernel$terms[[i]]$lengthscale <- rep(term$lengthscale, length(rest))
    }
  }
  name_columns(kernel, names)
}
