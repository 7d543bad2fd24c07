# The fit of blocks: the search of glm-irls.R with sums over blocks.

#' Generalised linear models of data in blocks
#'
#' [cl_glm()] with a formula fits data that do not fit in the memory of the device or of the host:
#' it reads them in blocks of rows. If the model matrix of all blocks takes at most a quarter of the
#' free memory of the host (`options(statcl.glm_cache = )`: bytes, 0 for never), it is kept in the
#' first pass, and later passes read nothing. Otherwise the blocks are read several times, and one
#' is kept in memory; two on a device, which computes with one while the next is read, turned into a
#' model matrix and uploaded. On the host, and in the passes for badly conditioned columns and for
#' the corrections of a linear regression, which run on the host, blocks are read and processed in
#' turn.
#'
#' The argument `data` is one of
#'
#' - **a function**: `data(reset = TRUE)` starts from the beginning, and each `data(reset = FALSE)`
#'   gives the next data frame, or `NULL` at the end, as for the package biglm. It must give the
#'   same rows each time. A query of a database is written in this way.
#' - **a file name or a connection** to comma-separated values with a header, which have the values
#'   and types that [read.csv()] gives of the whole; for other formats write a function. The text
#'   is read before the first pass, to find the types of columns, and the blocks are then in a
#'   temporary file. A field with quotes must be in quotes as a whole, rows may lack fields at their
#'   end, and text must be in the encoding of the session: that of a file is named by
#'   `file("name.csv", encoding = "latin1")`. Text that cannot be read in this way, or is damaged,
#'   is an error with the number of the line; no row is lost silently. (Damage of compressed data is
#'   seen in files, not in other connections.)
#' - **an Arrow** table, data set, query or `RecordBatchReader` of the package arrow, in its
#'   batches. (Tested with objects of the same functions, as the package is not available where
#'   the tests run.)
#' - **a data frame** with `block`, the number of rows of a block. A data frame is also processed by
#'   blocks, without this argument, if its model matrix would take more than a quarter of the
#'   device's memory or of the free memory of the host (`options(statcl.glm_memory = )`: bytes).
#'
#' Families are those with one linear predictor, by maximum likelihood: `"bernoulli_logit"`,
#' `"binomial_logit"`, `"normal_id"`, `"poisson_log"`, `"neg_binomial_2_log"`, and all families of
#' R. `weights`, `offset`, `trials`, `subset`, `na.action`, `etastart` and `mustart` are looked up
#' in each block. A column has the same type in all blocks: whole numbers become doubles if other
#' blocks have doubles, and factors get the levels of all blocks, for which the fit begins again;
#' other changes of type are refused. Terms of the formula are computed by blocks: those that depend
#' on other rows, such as `poly(x, 2)` or `scale(x)`, are refused. `scale(x, 3, 2)`,
#' `poly(x, 2, raw = TRUE)` and `splines::ns()` with numbers for all knots are accepted. The levels
#' of factors are collected in a further pass, unless they are given as a list:
#' `xlev = list(g = c("a", "b"))`. They may be missing from a block.
#'
#' @section Accuracy and passes:
#' The fit has the numbers of the same fit in memory, up to rounding, whatever the size of the
#' blocks. Where columns are badly conditioned or blocks are small, each block is added to a
#' triangular factor by Householder's QR decomposition, otherwise to the cross-products X' W X,
#' which are summed in the order of the blocks. Linear regression is corrected with residuals
#' computed in twice the precision. It needs three or four passes over the data, and other families
#' as many as the search has iterations, and three; `"neg_binomial_2_log"` some twenty.
#' `progress` reports them.
#'
#' @section The fit:
#' It has the classes `"cl_glm_stream"` and `"cl_glm"`, and keeps no rows. [summary()], [vcov()],
#' [confint()], [predict()] with `newdata`, [anova()], [AIC()], [update()] (which reads the data
#' again) and `broom::tidy()` and `glance()` work. Numbers for each row, from [fitted()],
#' [residuals()], [weights()], [hatvalues()], [cooks.distance()] and [predict()] without `newdata`,
#' are computed by another pass, if the source can be read again (not a connection or a
#' `RecordBatchReader`; with `model = FALSE` the fit does not keep the source). A fit of separated
#' data warns in the words of [glm()].
#'
#' @section Errors:
#' `statcl_error_argument`, naming the argument, for other methods and families, terms that depend
#' on all rows, blocks without a variable of the formula or with another class of it, text that
#' cannot be read (with the fields `line` and, where it is known, `column`), and data that change
#' between two passes that read them; for methods that need the rows. Connections that were opened
#' here are closed, and temporary files removed, after errors and interrupts too.
#' @name cl_glm_blocks
#' @seealso [cl_glm()]
#' @examples
#' # A function that gives the rows of a data frame in blocks of 10
#' rows_of <- function(data, size) {
#'   at <- 0
#'   function(reset = FALSE) {
#'     if (reset) at <<- 0 else if (at < nrow(data)) {
#'       rows <- seq(at + 1, min(at + size, nrow(data)))
#'       at <<- at + length(rows)
#'       data[rows, ]
#'     }
#'   }
#' }
#' fit <- cl_glm(breaks ~ wool + tension, data = rows_of(warpbreaks, 10), family = "poisson_log")
#' summary(fit)
#' coef(glm(breaks ~ wool + tension, data = warpbreaks, family = poisson))
#'
#' # A file, in blocks of 20 lines
#' path <- tempfile(fileext = ".csv")
#' write.csv(mtcars, path)
#' cl_glm(am ~ wt + factor(cyl), data = path, block = 20)
NULL

# As fit_glm(), for a source of blocks.
stream_glm <- function(formula, data, family, method, prior, call, where, contrasts, block,
                       start = NULL, control = list(), progress = TRUE, xlev = NULL,
                       ..., model = TRUE, to_term = NULL) {
  check_dots_empty(...)
  method <- check_choice(method, c("ml", "map", "mcmc", "firth"), "method")
  if (method != "ml" || !is.null(prior)) {
    abort_argument("method", "a fit by blocks is by method \"ml\", without priors")
  }
  if (!is.null(two_parts(formula))) {
    abort_argument("formula", "a formula of two parts cannot be fitted by blocks")
  }
  if (!is.null(block)) block <- check_count(block, "block", 1)
  check_flag(progress, "progress")
  control <- glm_control(control, method)$search
  variables <- unique(c(all.vars(formula), all.vars(call)))
  if (!inherits(formula, "formula") || "." %in% variables) variables <- NULL
  if (is.data.frame(data) && is.null(block)) block <- default_block(data)
  source <- new_source(data, block, variables)
  on.exit(source$close())
  fitted <- function(types = NULL) {
    force(types)
    s <<- new_stream(formula, source, call, where, family, contrasts, xlev, progress)
    s$types <- types
    s$settled <- !is.null(types)
    begin_stream(s)
    if (!is.null(to_term)) {
      s$columns <- which(s[["assign"]] <= to_term)
      s$names <- s$names[s$columns]
      s$unit <- s$unit[s$columns]
    }
    fit_stream(s, start, control)
  }
  s <- NULL
  fit <- tryCatch(fitted(), statcl_widened = function(e) NULL)
  if (is.null(fit)) fit <- fitted(types_of_all(s))
  fit$stream <- c(list(data = if (model && reads_again(data)) data, block = block,
                       variables = variables, sums = c(s$count[1:2], s$sums), control = control),
                  mget(c("frame", "formula", "trials", "where", "levels", "plain", "family",
                         "types", "classes", "assign"), s))
  fit
}

# Rows of a block that take some 64 MB as doubles.
default_block <- function(data) max(1e3, min(1e6, floor(2^23 / max(length(data), 1L))))

# Whether the model matrix of a data frame is too large for the memory of the host or, if it would
# be there, of the device: it and X' W X then take more than half of it. It can be fitted by blocks
# then.
exceeds_memory <- function(formula, data, family, method) {
  limit <- getOption("statcl.glm_memory")
  if (!is.data.frame(data) || (is.null(limit) && nrow(data) < 1e6) ||
        !identical(method[1L], "ml") || !is.null(two_parts(formula))) return(FALSE)
  columns <- tryCatch({
    few <- droplevels(utils::head(data, 1000L))
    width <- function(v) if (is.factor(v)) nlevels(v) else if (is.character(v))
      length(unique(v)) else NCOL(v)
    frame <- stats::model.frame(formula, few, na.action = stats::na.pass)
    if (!identical(attr(attr(frame, "terms"), "predvars"), attr(attr(frame, "terms"), "variables")))
      return(FALSE)
    if (!fits_by_blocks(read_glm_family(family))) return(FALSE)
    ncol(stats::model.matrix(attr(frame, "terms"), frame)) +
      sum(vapply(data, width, 0)) - sum(vapply(few, width, 0))
  }, error = function(e) 0)
  numbers <- as.double(nrow(data)) * columns
  if (is.null(limit)) {
    limit <- host_memory()
    where <- where_for("glm_fit", numbers)
    if (where >= 0L) limit <- min(limit, device_table()$memory[where + 1L])
  }
  numbers * 16 > limit / 2
}

# Bytes for the numbers of blocks between passes; NULL for none.
stream_room <- function() {
  room <- getOption("statcl.glm_cache", host_memory() / 4)
  if (is.numeric(room) && length(room) == 1L && isTRUE(room > 0)) min(room, 2^36)
}

# Bytes that are free; Inf where that is not known.
host_memory <- function() {
  lines <- tryCatch(readLines("/proc/meminfo", warn = FALSE), error = function(e) "",
                    warning = function(w) "")
  free <- grep("^MemAvailable:", lines, value = TRUE)
  if (length(free) == 1L) 1024 * as.numeric(gsub("[^0-9]", "", free)) else Inf
}

# ---- the search ----------------------------------------------------------------------------------

fit_stream <- function(s, start, control) {
  if (!"phi" %in% family_row(s$family)$aux) {
    s$r <- irls_family(s$family)
    found <- search_stream(s, start, control)
  } else {
    found <- search_phi(s, start, control)
  }
  finish_stream(s, found)
}

search_stream <- function(s, start, control) {
  problem <- list(family = structure("", row = r_row(s$r)))
  irls(problem, NULL, stream_solver(s), start, control, function(...) NULL)
}

# A solver for irls() (glm-irls.R). Where columns are well-conditioned, the step is by the sums of
# X' W X; else by the triangular factor of all rows, to which each block is added by Householder
# reflections. Least squares is then refined with residuals in twice the precision. The factor also
# shows which columns are linear combinations of others.
stream_solver <- function(s) {
  p <- length(s$names)
  normal <- is_least_squares(s$family)
  mode <- if (s$wide) "products" else "rotation"
  kept <- seq_len(p)
  root <- NULL
  last <- NULL # the arguments of the last pass
  pass <- function(beta, start = NULL, how = mode) {
    last <<- list(beta, start)
    first <- is.null(beta)
    if (how == "rotation" && !is.null(root) && normal && !first) how <- "slope"
    stream_sums(s, beta, start, how, kept)
  }
  by_root <- function(factor) {
    found <- qr(factor[, kept, drop = FALSE], tol = dependence(s$family))
    k <- seq_len(found$rank)
    kept <<- sort(kept[found$pivot[k]]) # a dropped column remains dropped
    root <<- if (length(k) > 0L) qr.R(found)[k, k, drop = FALSE] else matrix(0, 0L, 0L)
    solved(qr.qty(found, factor[, p + 1L])[k])
  }
  solved <- function(half) {
    change <- numeric(p)
    k <- length(kept)
    if (k > 0L) change[kept] <- backsolve(root, half) / s$unit[kept]
    list(change = change, square = sum(half^2), kept = kept,
         root = root * rep(s$unit[kept], each = k))
  }
  by_gram <- function(at) {
    info <- at$gram[kept, kept, drop = FALSE]
    if (!all(is.finite(info)) || any(diag(info) < 1e-280) || is_skew(info, 1e-4)) return(NULL)
    size <- sqrt(diag(info))
    root <<- chol(info / tcrossprod(size)) * rep(size / s$unit[kept], each = length(size))
    solved(backsolve(root, at$right[kept] / s$unit[kept], transpose = TRUE))
  }
  step <- function(at, score) {
    if (!is.null(at$factor)) return(by_root(at$factor))
    if (!is.null(at$slope)) {
      return(solved(if (length(kept) > 0L) backsolve(root, at$slope[kept], transpose = TRUE)))
    }
    found <- by_gram(at)
    if (!is.null(found)) return(found)
    found <- by_root(pass(last[[1L]], last[[2L]], "rotation")$weight$factor)
    size <- sqrt(colSums(root^2))
    if (min(abs(diag(root)) / size, 1) < 1e-4) mode <<- "rotation"
    found
  }
  begin <- function(start) {
    if (!is.null(start)) start_beta(list(problem = list(x = matrix(0, 0L, p), intercept = 0L),
                                         classes = 1L, family = s$family, kept = seq_len(p)),
                                    start)
    at <- pass(NULL, start)
    if (is.null(at)) abort_start()
    first <- step(at$weight)
    to <- pass(first$change)
    if (!is.null(to)) return(list(beta = first$change, at = to))
    beta <- numeric(p)
    if (s$intercept > 0L) {
      beta[s$intercept] <- s$r$linkfun(s$mean) - s$mean_offset
    }
    to <- if (all(is.finite(beta))) pass(beta)
    if (is.null(to)) abort_start()
    list(beta = beta, at = to)
  }
  list(begin = begin, at = function(beta) pass(beta), step = step,
       rows = function() s$count[["used"]])
}

# One pass: list(weight, deviance, pearson) at `beta`, or for NULL at the starting linear predictors
# (from `start` if it is given); NULL if means are invalid. `weight` holds, by `how`: X' W X and
# X' s of the scores s; the triangular factor of sqrt(W) X and s / sqrt(W), of columns in their
# units; or X' s in twice the precision. At the start, s is such that the step gives coefficients.
stream_sums <- function(s, beta, start, how, kept) {
  p <- length(s$names)
  sums <- list(deviance = 0, pearson = 0)
  factor <- NULL
  carried <- matrix(0, length(kept) + 1L, 2L)
  first <- is.null(s$count)
  moments <- numeric(3L)
  null <- numeric(2L)
  send <- function(block) {
    if (first) moments <<- moments + c(sum(block$w * block$y), sum(block$w),
                                       sum(block$offset) * (if (length(block$offset) == 1L)
                                         length(block$y) else 1))
    if (s$search_null && !is.null(beta)) null <<- null + null_terms(s, block)
    begin <- NULL
    if (is.null(beta)) {
      if (is.null(start)) {
        begin <- block$eta
        if (is.null(begin)) begin <- as.double(s$r$linkfun(start_means(s, block)))
      } else {
        beta <- start
      }
    }
    at_start <- is.null(beta) || identical(beta, start)
    if (how == "slope") {
      carried <<- .Call(r_least_squares_slope, scaled_rows(s, block, sqrt(block$w), kept),
                        (block$y - block$offset) * sqrt(block$w), beta[kept] * s$unit[kept],
                        carried)
      return(NULL)
    }
    sum_block(s, block, beta, begin, at_start, how)
  }
  receive <- function(job) {
    if (how == "slope") return(TRUE)
    found <- job()
    if (is.null(found)) return(FALSE)
    if (!is.null(found$factor)) factor <<- found$factor(factor)
    found$factor <- NULL
    for (name in names(found)) {
      sums[[name]] <<- if (is.null(sums[[name]])) found[[name]] else sums[[name]] + found[[name]]
    }
    TRUE
  }
  if (!run_pass(s, if (is.null(beta)) "start" else "search", send, receive)) return(NULL)
  if (first) {
    s$mean <- moments[1L] / moments[2L]
    s$mean_offset <- moments[3L] / s$count[["used"]]
  }
  if (s$search_null && !is.null(beta)) step_null(s, null)
  if (how == "slope") {
    s$exact <- TRUE
    whole <- rowSums(carried)
    slope <- numeric(p)
    slope[kept] <- whole[seq_along(kept)]
    return(list(weight = list(slope = slope), deviance = whole[length(whole)],
                pearson = whole[length(whole)]))
  }
  if (!is.null(factor)) factor <- triangle(factor)
  list(weight = c(sums[c("gram", "right")], list(factor = factor)), deviance = sums$deviance,
       pearson = sums$pearson)
}

scaled_rows <- function(s, block, by, kept = seq_along(s$names)) {
  x <- block$x[, kept, drop = FALSE]
  x * by / rep(s$unit[kept], each = nrow(x))
}

# The means from which a family starts.
start_means <- function(s, block) {
  suppressWarnings(glm_response_as_r(s$r, block$y, block$w, length(block$y)))$mustart
}

# The sums of one block, as a function that gives them: on a device the work has begun.
sum_block <- function(s, block, beta, begin, at_start, how) {
  w <- if (any(block$w != 1)) block$w
  data <- list(y = block$y, weights = w)
  x <- block$x
  on_device <- function() {
    x <- as_cl(x)
    column <- function(v) column_beside(rep_len(v, nrow(x)), x)
    parts <- device_parts(s$r, data, column)
    offset <- if (length(block$offset) > 1L) column(block$offset) else 0
    eta <- if (is.null(beta)) column(begin) else cl_matmul(x, matrix(beta)) + offset
    queued <- if (is.null(parts)) device_point(s$r, data, column)(eta) else parts$queue(eta)
    if (is.null(queued)) return(function() NULL)
    target <- if (at_start) queued$weight * (eta - offset) + queued$score else queued$score
    gram <- weighted_crossprod(x, queued$weight)
    right <- cl_crossprod(x, target)
    return(function() {
      at <- if (is.null(parts)) queued else parts$read(queued)
      if (is.null(at)) return(NULL)
      found <- list(gram = unname(as.matrix(gram)), right = as.vector(as.matrix(right)),
                    deviance = at$deviance, pearson = at$pearson)
      cl_free(x)
      found
    })
  }
  rotate <- how == "rotation"
  on_engine(if (rotate) -1L else where_for("glm_fit", x, kind = "block of rows"), function(where) {
    if (where >= 0L) on_device() else host_sums(s, block, data, beta, begin, at_start, rotate)
  })
}

host_sums <- function(s, block, data, beta, begin, at_start, rotate) {
  x <- block$x
  p <- ncol(x)
  eta <- if (is.null(beta)) begin else as.vector(x %*% beta) + block$offset
  at <- host_point(s$r, data)(eta)
  if (is.null(at)) return(function() NULL)
  target <- if (at_start) at$weight * (eta - block$offset) + at$score else at$score
  found <- at[c("deviance", "pearson")]
  if (rotate) {
    used <- at$weight > 0
    half <- sqrt(at$weight[used])
    rows <- triangle(cbind(scaled_rows(s, list(x = x[used, , drop = FALSE]), half),
                           target[used] / half))
    found$factor <- function(above) {
      whole <- rbind(above, rows) # of several blocks at a time: each step has rounding errors
      if (nrow(whole) > 2 * p && length(whole) > 1e6) triangle(whole) else whole
    }
  } else {
    found$gram <- glm_gram(x, at$weight)
    found$right <- as.vector(base::crossprod(x, target))
  }
  function() found
}

# The triangular factor of the columns of x except the last one, which is rotated with them, in p x
# (p + 1). (If it took part in the reflections, their rounding errors would depend on the
# residuals.)
triangle <- function(x) {
  k <- ncol(x) - 1L
  if (nrow(x) <= k || k == 0L) return(x[seq_len(nrow(x) * (k > 0L)), , drop = FALSE])
  found <- qr(x[, -(k + 1L), drop = FALSE], LAPACK = TRUE)
  cbind(qr.R(found)[, order(found$pivot), drop = FALSE], qr.qty(found, x[, k + 1L])[seq_len(k)])
}
