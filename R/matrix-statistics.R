# Functions of base R and stats for clMatrix: moments, centring and scaling, differences,
# which.min(), order(). Functions that are not generic in base R are made generic with R's function
# as default, so that attaching the package masks nothing with a message.

#' Statistics of device matrices
#'
#' Functions of packages base and stats. `var()`, `cov()` and `cor()` of columns, `scale()`,
#' `sweep()` and `diff()` are computed where the matrix is; so is `which()`, which copies only
#' columns with a true element to the host. `sort()`, `order()`, `median()`, `quantile()` and
#' `rowsum()`, rank correlations, and `use = "complete.obs"` and the like with missing values work
#' on a copy on the host, as do `unique()`, `duplicated()` and `cut()`. Each of these gives a
#' message of class `statcl_message_copy` once a session.
#'
#' Covariances are computed in two passes, as in base R: the column means are subtracted and
#' corrected once by the mean of the remainder, and then products are formed.
#'
#' R finds these methods for calls such as `var(x)`; `stats::var(x)` and functions of other packages
#' that call it need `as.matrix(x)`. Functions that call `as.matrix()` or `as.vector()` themselves
#' ([apply()], [sd()], [svd()], ...) need no method.
#'
#' @param x A [clMatrix]; for `cov()`, `cor()`, `var()` and `sweep()` it may also be a base R matrix
#'   if another argument is a `clMatrix`. For `which()`, nonzero elements are true.
#' @param y `NULL`, or a matrix or vector with as many rows.
#' @param na.rm,use,method As for the base R functions.
#' @param arr.ind Whether to return rows and columns.
#' @param useNames Whether to return row names.
#' @param MARGIN 1 if `STATS` has one number for each row, 2 for each column.
#' @param STATS The numbers.
#' @param FUN A function of two matrices, or its name.
#' @param check.margin Whether to warn if the length of `STATS` does not match.
#' @param center,scale Logical, or a number for each column.
#' @param lag,differences As for [diff()].
#' @param decreasing Whether to sort in decreasing order.
#' @param group,reorder As for [rowsum()].
#' @param ... Passed on to the base R function; further arguments of `FUN`.
#' @return A `clMatrix` where base R returns a matrix (covariances have the symmetric view;
#'   `scale()` has the attributes `scaled:center` and `scaled:scale`), a base R vector where it
#'   returns a vector.
#' @section Errors:
#' `statcl_error_argument` for shapes that do not conform and for arguments of the wrong type.
#' @seealso [clMatrix-reductions] for sums, means and extremes.
#' @name clMatrix-statistics
#' @usage \S4method{var}{clMatrix,ANY}(x, y = NULL, na.rm = FALSE, use)
#'
#' \S4method{cov}{clMatrix,ANY}(x, y = NULL, use = "everything",
#'   method = c("pearson", "kendall", "spearman"))
#'
#' \S4method{cor}{clMatrix,ANY}(x, y = NULL, use = "everything",
#'   method = c("pearson", "kendall", "spearman"))
#' @eval method_aliases(c("var", "cov", "cor"))
#' @importFrom stats var cov cor
#' @rawNamespace exportMethods(var, cov, cor)
#' @examples
#' x <- as_cl(as.matrix(iris[, 1:4]))
#' cor(x)
#' head(scale(x), 3)
#' which(x > 7.5)
#' sweep(x, 2, colMeans(x))
#' suppressMessages(median(x))
NULL

# ---- copies on the host -------------------------------------------------------------------------

announced_copies <- new.env(parent = emptyenv())

# A base R copy of x for the function `name`, announced once per session.
copy_for <- function(name, x) {
  if (is_cl(x) && is.null(announced_copies[[name]])) {
    assign(name, TRUE, envir = announced_copies)
    text <- sprintf(paste("%s() of a clMatrix works on a copy on the host (this message appears",
                          "once per session)\n"), name)
    message(structure(list(message = text, call = NULL),
                      class = c("statcl_message_copy", "statcl_message", "message", "condition")))
  }
  on_host(x)
}

#' @rdname clMatrix-statistics
#' @export
sort.clMatrix <- function(x, decreasing = FALSE, ...) {
  sort(as.vector(copy_for("sort", x)), decreasing = decreasing, ...)
}

# The method that order(), rank() and similar functions call.
#' @export
xtfrm.clMatrix <- function(x) as.vector(copy_for("order", x))

#' @rdname clMatrix-statistics
#' @importFrom stats median
#' @export
median.clMatrix <- function(x, na.rm = FALSE, ...) {
  median(as.vector(copy_for("median", x)), na.rm = check_flag(na.rm, "na.rm"), ...)
}

#' @rdname clMatrix-statistics
#' @importFrom stats quantile
#' @export
quantile.clMatrix <- function(x, ...) {
  values <- as.vector(copy_for("quantile", x))
  tryCatch(quantile(values, ...), error = function(e) abort_argument("...", conditionMessage(e)))
}

#' @rdname clMatrix-statistics
#' @export
rowsum.clMatrix <- function(x, group, reorder = TRUE, na.rm = FALSE, ...) {
  sums <- tryCatch(rowsum(copy_for("rowsum", x), group, reorder = reorder, na.rm = na.rm, ...),
                   error = function(e) abort_argument("group", conditionMessage(e)))
  like(sums, x)
}

#' @export
unique.clMatrix <- function(x, incomparables = FALSE, ...) {
  like(unique(copy_for("unique", x), incomparables, ...), x)
}

#' @export
duplicated.clMatrix <- function(x, incomparables = FALSE, ...) {
  duplicated(copy_for("duplicated", x), incomparables, ...)
}

#' @export
anyDuplicated.clMatrix <- function(x, incomparables = FALSE, ...) {
  anyDuplicated(copy_for("anyDuplicated", x), incomparables, ...)
}

#' @export
cut.clMatrix <- function(x, ...) cut(as.vector(copy_for("cut", x)), ...)

#' @export
aperm.clMatrix <- function(a, perm = NULL, ...) {
  if (is.character(perm)) perm <- match(perm, names(a@Dimnames))
  if (is.null(perm) || identical(as.numeric(perm), c(2, 1))) return(t(a))
  if (identical(as.numeric(perm), c(1, 2))) return(a)
  abort_argument("perm", "'perm' must be 2:1 or 1:2 for a matrix")
}

# ---- places and differences ---------------------------------------------------------------------

setGeneric("which")

#' @rdname clMatrix-statistics
#' @export
setMethod("which", "clMatrix", function(x, arr.ind = FALSE, useNames = TRUE) {
  columns <- if (length(x) > 0L) base::which(reductions("count_true", x, 2L)[[1L]] > 0)
  at <- integer()
  if (length(columns) > 0L) {
    part <- if (length(columns) == x@Dim[2L]) as.matrix(x) else fetch(x, NULL, columns)
    at <- base::which(as.vector(part) != 0) - 1
    m <- x@Dim[1L]
    at <- (columns[at %/% m + 1] - 1) * m + at %% m + 1
    if (length(x) <= .Machine$integer.max) at <- as.integer(at)
  }
  if (!check_flag(arr.ind, "arr.ind")) return(at)
  arrayInd(at, x@Dim, dimnames(x), useNames = check_flag(useNames, "useNames"))
})

#' @rdname clMatrix-statistics
#' @export
diff.clMatrix <- function(x, lag = 1L, differences = 1L, ...) {
  lag <- check_count(lag, "lag", 1)
  differences <- check_count(differences, "differences", 1)
  if (lag * differences >= x@Dim[1L]) return(numeric())
  for (i in seq_len(differences)) {
    n <- x@Dim[1L]
    x <- x[(lag + 1):n, , drop = FALSE] - x[seq_len(n - lag), , drop = FALSE]
  }
  x
}

# ---- a number for each row or column ------------------------------------------------------------

# A number for each row (margin 1) or column (2) as a lazy matrix of the shape of x.
spread_numbers <- function(numbers, x, margin) {
  shape <- if (margin == 1L) c(length(numbers), 1L) else c(1L, length(numbers))
  one <- like(matrix(as.double(numbers), shape[1L], shape[2L]), x)
  value(repeated(one, x@Dim), x@Dim, NULL, "general")
}

setGeneric("sweep")

sweep_device <- function(x, MARGIN, STATS, FUN = "-", check.margin = TRUE, ...) {
  STATS <- as.vector(on_host(STATS))
  if (is.character(MARGIN)) MARGIN <- match(MARGIN, names(x@Dimnames))
  if (length(MARGIN) != 1L || !MARGIN %in% 1:2) {
    abort_argument("MARGIN", "'MARGIN' must be 1, 2 or the name of a dimension")
  }
  FUN <- match.fun(FUN)
  if (!is.numeric(STATS) || length(STATS) != x@Dim[MARGIN]) {
    STATS <- check_numeric(STATS, "STATS")
    return(base::sweep(x, MARGIN, STATS, FUN, check.margin, ...))
  }
  FUN(x, spread_numbers(STATS, x, MARGIN), ...)
}

#' @rdname clMatrix-statistics
#' @export
setMethod("sweep", "clMatrix", sweep_device)

#' @rdname clMatrix-statistics
#' @export
setMethod("sweep", signature("clMatrix", "ANY", "clMatrix"), sweep_device)

#' @rdname clMatrix-statistics
#' @export
setMethod("sweep", signature("ANY", "ANY", "clMatrix"),
          function(x, MARGIN, STATS, FUN = "-", check.margin = TRUE, ...) {
            base::sweep(x, MARGIN, as.vector(STATS), FUN, check.margin, ...)
          })

#' @rdname clMatrix-statistics
#' @export
scale.clMatrix <- function(x, center = TRUE, scale = TRUE) {
  numbers <- function(given, argument, own) {
    given <- on_host(given)
    if (is.logical(given)) return(if (check_flag(given, argument)) own())
    given <- as.vector(check_numeric(given, argument))
    if (length(given) == x@Dim[2L]) return(given)
    abort_argument(argument, sprintf("'%s' must have length %d, one number for each column, not %d",
                                     argument, x@Dim[2L], length(given)))
  }
  center <- numbers(center, "center", function() colMeans(x, na.rm = TRUE))
  if (!is.null(center)) x <- x - spread_numbers(center, x, 2L)
  scale <- numbers(scale, "scale", function() {
    count <- x@Dim[1L] - colSums(is.na(x))
    sqrt(colSums(x^2, na.rm = TRUE) / base::pmax(1, count - 1))
  })
  if (!is.null(scale)) x <- x / spread_numbers(scale, x, 2L)
  if (!is.null(center)) attr(x, "scaled:center") <- center
  if (!is.null(scale)) attr(x, "scaled:scale") <- scale
  x
}

# ---- second moments -----------------------------------------------------------------------------

# Columns less their means.
centred <- function(x) {
  x <- x - spread_numbers(colMeans(x), x, 2L)
  x - spread_numbers(colMeans(x), x, 2L)
}

# The columns of a centred x scaled to length one, and which of them were zero.
unit_columns <- function(x) {
  largest <- apply_columns("max", abs(x))
  x <- x / spread_numbers(ifelse(largest > 0, largest, 1), x, 2L)
  size <- sqrt(colSums(x^2))
  list(x = x / spread_numbers(size, x, 2L), zero = size %in% 0)
}

apply_columns <- function(op, x) reductions(op, x, 2L)[[1L]]

# The operand of a second moment as a clMatrix on the engine of `like`.
moment_operand <- function(x, like, argument) {
  if (is_cl(x)) return(x)
  x <- check_numeric(x, argument)
  if (is.null(dim(x))) x <- matrix(x)
  like(x, like)
}

# cov(), cor() and var(); at least one of x and y is a clMatrix, y may be NULL.
moments <- function(name, x, y, use, method = "pearson") {
  kinds <- c("all.obs", "complete.obs", "pairwise.complete.obs", "everything", "na.or.complete")
  kind <- if (is.character(use) && length(use) == 1L) pmatch(use, kinds) else NA
  if (is.na(kind)) {
    abort_argument("use", sprintf("'use' must be one of %s", paste0('"', kinds, '"',
                                                                    collapse = ", ")))
  }
  if (!identical(method, c("pearson", "kendall", "spearman"))) {
    method <- check_choice(method, c("pearson", "kendall", "spearman"), "method")
  }
  operand <- if (is_cl(x)) x else y
  if (is.null(x)) abort_argument("x", "supply both 'x' and 'y' or a matrix 'x'")
  x <- moment_operand(x, operand, "x")
  if (!is.null(y)) y <- moment_operand(y, operand, "y")
  if (!is.null(y) && y@Dim[1L] != x@Dim[1L]) {
    abort_argument("y", sprintf("incompatible dimensions: 'x' has %d rows, 'y' has %d", x@Dim[1L],
                                y@Dim[1L]))
  }
  missing <- kinds[kind] != "everything" && (anyNA(x) || (!is.null(y) && anyNA(y)))
  if (method[1L] != "pearson" || missing || x@Dim[1L] < 2L || x@Dim[2L] == 0L) {
    plain <- get(if (name == "cor") "cor" else "cov", asNamespace("stats"))
    copies <- list(copy_for(name, x), if (!is.null(y)) on_host(y), kinds[kind], method[1L])
    result <- tryCatch(do.call(plain, copies),
                       error = function(e) abort_argument("x", conditionMessage(e)))
    return(like(result, x))
  }
  if (name == "cor") correlations(x, y) else covariances(x, y)
}

covariances <- function(x, y) {
  a <- centred(x)
  product <- if (is.null(y)) crossprod(a) else crossprod(a, centred(y))
  product / (x@Dim[1L] - 1)
}

correlations <- function(x, y) {
  a <- unit_columns(centred(x))
  b <- if (!is.null(y)) unit_columns(centred(y))
  if (any(a$zero, b$zero)) warning("the standard deviation is zero", call. = FALSE)
  if (!is.null(y)) return(pmax(pmin(crossprod(a$x, b$x), 1), -1))
  r <- pmax(pmin(crossprod(a$x), 1), -1)
  diag(r) <- 1
  # both halves from the lower
  value(.Call(r_op, "copy_as", list(r@handle), 4L, NULL), NULL, r@Dimnames)
}

setGeneric("var")
setGeneric("cov")
setGeneric("cor")

for (classes in pair_signatures) {
  setMethod("var", classes, function(x, y = NULL, na.rm = FALSE, use) {
    if (missing(use)) use <- if (check_flag(na.rm, "na.rm")) "na.or.complete" else "everything"
    moments("var", x, y, use)
  })
  setMethod("cov", classes, function(x, y = NULL, use = "everything",
                                     method = c("pearson", "kendall", "spearman")) {
    moments("cov", x, y, use, method)
  })
  setMethod("cor", classes, function(x, y = NULL, use = "everything",
                                     method = c("pearson", "kendall", "spearman")) {
    moments("cor", x, y, use, method)
  })
}
rm(classes)
