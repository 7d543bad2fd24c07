# The blocks of a fit as numbers: model frames, levels of factors, responses, and the checks that
# all blocks, and all passes over them, agree.

# The data of a blockwise fit, an environment: the arguments of the call, results of the first block
# and the first pass, and the source. `xlev`: levels of factors, which are then not collected.
new_stream <- function(formula, source, call, where, family, contrasts, xlev, progress) {
  s <- list2env(list(formula = formula, source = source, room = stream_room(), where = where,
                     family_given = family, contrasts = contrasts, xlev = xlev,
                     progress = progress, started = seconds_now(), due = progress_clock(), done = 0,
                     found = list()), parent = emptyenv())
  frame <- call[c(1L, match(c("formula", "data", "subset", "weights", "offset", "na.action",
                              "etastart", "mustart"), names(call), 0L))]
  frame$data <- quote(data)
  s$trials <- call$trials
  s$frame <- frame
  s
}

# Reads the first block: terms, classes of variables, levels (for which all blocks are read), the
# family, and the columns of the model matrix.
begin_stream <- function(s) {
  s$source$restart()
  data <- s$source$read()
  if (is.null(data)) abort_argument("data", "there are no observations")
  whole <- classed(stats::terms(s$formula, data = data), "formula")
  if (attr(whole, "response") == 0L) abort_argument("formula", "the formula has no response")
  s$frame$formula <- s$formula <- stats::formula(whole)
  used <- unique(unlist(lapply(c(as.list(s$frame)[-1L], s$trials), all.vars)))
  if (is.null(s$types)) s$types <- lapply(as.list(data)[intersect(used, names(data))], no_rows)
  data <- with_types(s, data)
  refuse_dependent(s, data)
  frame <- block_frame(s, data)
  classes <- attr(attr(frame, "terms"), "dataClasses")
  named <- names(classes)[classes %in% c("factor", "ordered", "character")]
  s$levels <- s$xlev
  if (!all(named %in% names(s$xlev))) s$levels <- collect_levels(s, data, named)
  frame <- block_frame(s, data)
  if (nrow(frame) == 0L) frame <- first_rows(s)
  s$terms <- attr(frame, "terms")
  s$classes <- attr(s$terms, "dataClasses")
  s$computed <- !all(names(s$classes) %in% names(s$types))
  labels <- attr(s$terms, "term.labels")
  s$plain <- all(attr(s$terms, "order") == 1L) && all(labels %in% names(frame)) &&
    all(grepl("^n(umeric|matrix)", s$classes[labels]))
  s$family <- stream_family(s, frame, data)
  design <- glm_design(s$terms, frame, s$family, s$contrasts)
  s$names <- colnames(design$x)
  s[["assign"]] <- design$assign
  s$contrasts <- design$contrasts
  s$intercept <- design$intercept
  s$unit <- power_of_two(vapply(seq_len(ncol(design$x)), function(j) max(abs(design$x[, j]), 0), 0))
  s$unit[!is.finite(s$unit)] <- 1
  s$wide <- !basis_is_cheap(design$x)
  s$search_null <- s$intercept > 0L && !is.null(stats::model.offset(frame))
}

# The first model frame with rows.
first_rows <- function(s) {
  s$source$restart()
  while (!is.null(data <- next_block(s))) {
    frame <- block_frame(s, data)
    if (nrow(frame) > 0L) return(frame)
  }
  abort_argument("data", "there are no observations")
}

# The family of the fit, which IRLS must be able to fit.
stream_family <- function(s, frame, data) {
  y <- if (is.factor(frame[[1L]])) frame[[1L]] else stats::model.response(frame)
  family <- family_of_response(s$family_given, y, stream_trials(s, frame, data))
  if (!fits_by_blocks(family)) {
    abort_argument("family", sprintf("family \"%s\" cannot be fitted by blocks: %s", family,
                                     "only families with one linear predictor can"))
  }
  family
}

fits_by_blocks <- function(family) is.null(density_of(family)) && !has_classes(family)

stream_trials <- function(s, frame, data) {
  if (!is.null(frame[["(trials)"]])) return(frame[["(trials)"]])
  if (!is.null(s$trials)) classed(eval(s$trials, data, s$where), "trials")
}

# The next block, with the types of all blocks; NULL at the end.
next_block <- function(s) {
  data <- s$source$read()
  if (!is.null(data)) with_types(s, data)
}

# The model frame of a block, with the levels known so far.
block_frame <- function(s, data) {
  trials <- if (!is.null(s$trials)) classed(eval(s$trials, data, s$where), "trials")
  frame <- eval_frame(s$frame, data, s$where, trials = if (length(trials) != 1L) trials,
                      xlev = s$levels)
  if (is.null(s$classes)) return(frame)
  classed(stats::.checkMFClasses(s$classes, frame), "data")
  frame
}

# Terms whose values for some rows depend on the other rows, such as poly(x, 2) or
# as.integer(factor(g)), would differ from block to block: they are computed for these rows, for the
# first quarter, and for single ones.
refuse_dependent <- function(s, data) {
  data <- utils::head(data, 1000L)
  given <- s$frame
  on.exit(s$frame <- given)
  s$frame$subset <- NULL
  s$frame$na.action <- quote(stats::na.pass)
  values <- function(data) {
    c(as.list(block_frame(s, data)), list(subset = eval(given$subset, data, s$where)))
  }
  attempt <- function(rows) {
    tryCatch(values(data[rows, , drop = FALSE]), error = function(e) NULL)
  }
  plain <- function(v, rows) {
    if (is.factor(v)) v <- as.character(v)
    as.vector(unclass(if (is.matrix(v)) v[rows, , drop = FALSE] else v[rows]))
  }
  same <- function(v, rows, part) {
    a <- plain(v, rows)
    b <- plain(part, seq_along(rows))
    if (!is.numeric(a) || !is.numeric(b)) return(identical(a, b))
    size <- max(abs(v[is.finite(v)]), 0)
    identical(is.na(a), is.na(b)) &&
      all(a == b | abs(a - b) <= 1e-10 * size | is.na(a), na.rm = TRUE)
  }
  whole <- values(data)
  code <- function(v) xtfrm(plain(v, seq_len(nrow(data)))[seq_len(nrow(data))])
  ends <- lapply(Filter(length, whole), function(v) c(which.min(code(v)), which.max(code(v))))
  quarter <- seq_len((nrow(data) + 3L) %/% 4L)
  for (rows in c(list(quarter), unique(c(nrow(data), unlist(ends))))) {
    part <- attempt(rows)
    if (is.null(part) && !identical(rows, quarter)) next
    for (name in if (is.null(part)) deparse1(s$formula[[3L]]) else names(part)) {
      if (!is.null(part) && same(whole[[name]], rows, part[[name]])) next
      abort_argument("formula", sprintf(paste(
        "'%s' depends on all rows of the data, so it cannot be computed by blocks: give its",
        "centre, knots or coefficients as numbers, or compute it beforehand"), name))
    }
  }
}

# The levels of the variables `named` that occur, by a pass over all blocks. They are those of a
# model frame of one row for each level, so in the order of a fit in memory.
collect_levels <- function(s, data, named) {
  seen <- rows <- list()
  repeat {
    frame <- block_frame(s, data)
    first <- integer()
    for (name in named) {
      v <- frame[[name]]
      k <- which(!duplicated(v) & !is.na(v))
      k <- k[!as.character(v[k]) %in% seen[[name]]]
      seen[[name]] <- c(seen[[name]], as.character(v[k]))
      first <- c(first, k)
    }
    k <- match(attr(frame, "row.names")[unique(first)], attr(data, "row.names"))
    if (length(k) > 0L) rows <- c(rows, list(as.data.frame(data[k, names(s$types), drop = FALSE])))
    show_stream(s, "collecting levels", data)
    data <- next_block(s)
    if (is.null(data)) break
  }
  if (length(rows) == 0L) return(s$xlev)
  frame <- block_frame(s, do.call(rbind, rows))
  levels <- lapply(stats::setNames(named, named), function(name) {
    all <- levels(as.factor(frame[[name]]))
    all[all %in% seen[[name]]]
  })
  c(s$xlev, levels[setdiff(named, names(s$xlev))])
}

# A block as numbers, for its rows of the model frame: list(x, y on the scale of the mean, w:
# weights of the deviance, offset, part: what residuals need, eta: starting linear predictors).
block_numbers <- function(s, data) {
  frame <- block_frame(s, data)
  n <- nrow(frame)
  dropped <- attr(frame, "na.action")
  if (n == 0L) return(list(n = 0L, dropped = dropped))
  y <- if (is.factor(frame[[1L]])) frame[[1L]] else stats::model.response(frame)
  response <- withCallingHandlers(
    glm_response(s$family, y, stream_trials(s, frame, data), frame[["(weights)"]]),
    statcl_warning_counts = function(w) {
      s$warned <- w
      invokeRestart("muffleWarning")
    })
  offset <- stats::model.offset(frame)
  if (!is.null(offset)) offset <- check_offset(offset, n)
  x <- if (s$plain) {
    labels <- attr(s$terms, "term.labels")
    unname(do.call(cbind, c(list(matrix(1, n, as.integer(s$intercept > 0L))),
                            lapply(frame[labels], unclass))))
  } else {
    unname(glm_design(s$terms, frame, s$family, s$contrasts)$x)
  }
  if (ncol(x) != length(s[["assign"]])) {
    abort_argument("data", "the model matrix of a block has other columns than that of the first")
  }
  attr(x, "assign") <- attr(x, "contrasts") <- NULL
  if (!is.null(s$columns)) x <- x[, s$columns, drop = FALSE]
  storage.mode(x) <- "double"
  part <- list(family = s$family, y = response$y, trials = response$trials, aux = s$aux,
               prior.weights = response$weights, offset = offset)
  if (!all(is.finite(part$y))) {
    abort_argument("y", "the response has missing or infinite values")
  }
  if (is.null(r_family(s$family))) check_support(s$family, response)
  w <- deviance_weights(part)
  begin <- if (!is.null(frame[["(etastart)"]])) frame[["(etastart)"]] else
    if (!is.null(frame[["(mustart)"]])) irls_family(s$family, 1)$linkfun(frame[["(mustart)"]])
  total <- sum(x)
  if (!is.finite(total)) {
    bad <- which(!is.finite(colSums(x * 1e-300)))
    if (length(bad) > 0L) abort_nonfinite_column(s$names[bad[1L]], bad[1L])
  }
  s$found[c("kind", "levels")] <- response[c("kind", "levels")]
  s$row <- s$row + n
  list(n = n, x = x, y = as.double(mean_response(part)), w = w, offset = offset, part = part,
       eta = begin, dropped = dropped,
       sums = c(sum(part$y), sum(w), total, sum(part$y * ((s$row - seq_len(n)) %% 97))))
}

# Applies `send` to each block, in the rows of weight above 0, and `receive` to its result, one
# block later: meanwhile a device works on a block. Stops where `receive` gives FALSE. The first
# pass counts; later ones check that the data have not changed.
run_pass <- function(s, what, send, receive) {
  if (isTRUE(s$kept_all)) return(run_kept(s, send, receive))
  s$source$restart()
  if (is.null(s$count)) s$kept <- list()
  s$done <- s$row <- 0
  count <- c(rows = 0, used = 0, blocks = 0)
  sums <- numeric(4L)
  dropped <- list()
  waiting <- NULL
  ends <- list()
  while (!is.null(data <- next_block(s))) {
    if (is.null(s$count) && s$computed && length(ends) < 250L) {
      ends <- c(ends, list(as.data.frame(data[c(1L, nrow(data)), names(s$types), drop = FALSE])))
    }
    block <- block_numbers(s, data)
    if (!is.null(block$dropped)) {
      s$action <- class(block$dropped)
      dropped <- c(dropped, list(as.vector(block$dropped) + count[[1L]]))
    }
    count <- count + c(block$n + length(block$dropped), sum(block$w > 0), 1)
    show_stream(s, what, data)
    if (block$n == 0L || !any(block$w > 0)) next
    sums <- sums + block$sums
    if (!is.null(waiting) && isFALSE(receive(waiting))) return(FALSE)
    block <- used_rows(block)
    keep_block(s, block)
    waiting <- send(block)
  }
  if (!is.null(waiting) && isFALSE(receive(waiting))) return(FALSE)
  s$kept_all <- !is.null(s$kept) && !is.null(s$room)
  if (is.null(s$count)) {
    if (count[["used"]] == 0) abort_argument("data", "there are no observations")
    if (length(ends) > 1L) refuse_dependent(s, do.call(rbind, ends))
    s$count <- count
    s$sums <- sums
    s$dropped <- unlist(dropped)
    if (!is.null(s$warned)) warning(s$warned)
  } else if (any(s$count[1:2] != count[1:2]) ||
               any(abs(s$sums - sums) > 1e-9 * (abs(s$sums) + abs(sums)) + 1e-300)) {
    abort_argument("data", sprintf(paste(
      "'data' gave other rows than before: %.0f with the sum of responses %.10g, and before %.0f",
      "with %.10g; it must give the same in every pass"), count[["rows"]], sums[1L],
      s$count[["rows"]], s$sums[1L]))
  }
  TRUE
}

# Keeps the numbers of a block for later passes, while all of them together take at most `s$room`
# bytes (NULL: none are kept).
keep_block <- function(s, block) {
  if (is.null(s$room) || is.null(s$kept)) return(invisible())
  s$taken <- if (length(s$kept) == 0L) 0 else s$taken
  s$taken <- s$taken + as.numeric(utils::object.size(block))
  if (s$taken > s$room) s$kept <- NULL else s$kept[[length(s$kept) + 1L]] <- block
}

# The pass over the blocks that are kept.
run_kept <- function(s, send, receive) {
  s$row <- 0
  waiting <- NULL
  for (block in s$kept) {
    block$part["aux"] <- list(s$aux)
    if (!is.null(waiting) && isFALSE(receive(waiting))) return(FALSE)
    waiting <- send(block)
  }
  is.null(waiting) || !isFALSE(receive(waiting))
}

used_rows <- function(block) {
  use <- block$w > 0
  if (!all(use)) {
    for (name in c("y", "w", "offset", "eta")) block[[name]] <- block[[name]][use]
    block$x <- block$x[use, , drop = FALSE]
    for (name in c("y", "trials", "prior.weights", "offset")) {
      block$part[[name]] <- block$part[[name]][use]
    }
  }
  block$offset <- if (is.null(block$offset)) 0 else block$offset
  block
}

show_stream <- function(s, what, data) {
  if (!s$progress) return(invisible())
  s$done <- s$done + nrow(data)
  if (!s$due()) return(invisible())
  of <- if (!is.na(s$source$rows)) s$source$rows else if (!is.null(s$count)) s$count[["rows"]]
  message(sprintf("cl_glm: %s, %.0f%s rows, %.0f s", what, s$done,
                  if (is.null(of)) "" else sprintf(" of %.0f", of), seconds_now() - s$started))
}
