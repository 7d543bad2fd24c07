# The result of cl_calibrate(): the test of uniform ranks, print, summary, plots.

calibration_result <- function(run) {
  made <- which(lengths(run$results) > 0L)
  if (length(made) == 0L) return(NULL)
  results <- run$results[made]
  rows <- function(part) do.call(rbind, lapply(results, `[[`, part))
  structure(list(ranks = rows("ranks"), values = rows("values"), draws = run$draws,
                 diagnostics = data.frame(replicate = made, rows("figures"),
                                          warning = vapply(results, `[[`, "", "warning")),
                 complete = length(made) == length(run$results),
                 elapsed = seconds_now() - run$started, call = run$call),
            class = "cl_calibration")
}

# ---- the test ------------------------------------------------------------------------------------

# Ranks 0, ..., draws of n replicates; at[i] is the number of ranks below i, which is binomial with
# probability i / (draws + 1). Two-sided pointwise p-values, the smallest of which is tested; in the
# middle they exceed 1.
counts_below <- function(ranks, draws) cumsum(tabulate(ranks + 1L, draws + 1L))[seq_len(draws)]

least_p <- function(ranks, draws) {
  n <- length(ranks)
  at <- counts_below(ranks, draws)
  share <- seq_len(draws) / (draws + 1)
  2 * min(stats::pbinom(at, n, share), stats::pbinom(at - 1, n, share, FALSE))
}

# The counts whose pointwise p-value exceeds p: columns lower and upper.
count_bands <- function(n, draws, p) {
  share <- seq_len(draws) / (draws + 1)
  p <- p / 2 * (1 + 1e-9)
  cbind(stats::qbinom(p, n, share), stats::qbinom(p, n, share, FALSE))
}

# The probability that uniform ranks stay within the bands everywhere: given one count, the next is
# binomial.
band_probability <- function(n, draws, p) {
  bands <- count_bands(n, draws, p)
  if (any(bands[, 1L] > bands[, 2L])) return(0)
  from <- 0
  probability <- 1
  for (i in seq_len(draws)) {
    to <- bands[i, 1L]:bands[i, 2L]
    step <- outer(to, from, `-`)
    step[] <- stats::dbinom(step, rep(n - from, each = length(to)), 1 / (draws + 2 - i))
    probability <- as.vector(step %*% probability)
    from <- to
  }
  min(1, sum(probability))
}

uniform_p <- function(ranks, draws) {
  max(0, 1 - band_probability(length(ranks), draws, least_p(ranks, draws)))
}

# The pointwise p-value of bands that hold everywhere with probability `level`.
band_level <- function(n, draws, level) {
  excess <- function(log_p) band_probability(n, draws, exp(log_p)) - level
  range <- log(c((1 - level) / draws / 4, 1 - level))
  for (i in 1:12) {
    middle <- mean(range)
    range[if (excess(middle) >= 0) 1L else 2L] <- middle
  }
  exp(range[1L])
}

# ---- methods -------------------------------------------------------------------------------------

#' Results of cl_calibrate()
#'
#' @param x,object A result of [cl_calibrate()].
#' @param digits Number of significant digits.
#' @param quantities Names of the quantities to plot; `NULL` for all.
#' @param max Maximum number of quantities that `plot()` shows. By default 6, or all that
#'   `quantities` names. A message reports how many are left out.
#' @param level Probability with which uniform ranks are within the bands everywhere.
#' @param row.names Names of the rows, or `NULL`.
#' @param optional,... Not used.
#' @return `summary()`: a data frame with one row for each quantity and columns `quantity`; `mean`
#'   and `sd` of the ranks, as fractions of their range (0.5 and 0.289 if they are uniform): a mean
#'   below 0.5 shows draws that are too large, an `sd` above 0.289 draws that vary too little;
#'   `p_value` of the test of uniform ranks, and `p_adjusted` for the number of quantities.
#'   `print()` shows it with a verdict. `plot()` draws for each quantity the histogram of the ranks,
#'   with the pointwise 99% interval of a uniform one, and the difference between the distribution
#'   function of the ranks and the uniform one, with simultaneous bands; it returns `x` invisibly.
#'   `as.data.frame()`: columns `replicate`, `quantity`, `value` (the true one), `rank` and `draws`.
#'
#'   The object is a list with the elements
#'   * `ranks`, `values`: matrices replicate x quantity,
#'   * `draws`: the largest rank,
#'   * `diagnostics`: a data frame with the `replicate`; its number of `divergent` iterations;
#'     `size`, the smallest effective size of a quantity, of all iterations; `thin`, iterations for
#'     each draw; `evaluations`; and the first `warning`, or `NA`,
#'   * `complete`: `FALSE` after an interrupt,
#'   * `elapsed`, `call`.
#' @seealso [cl_calibrate()]
#' @name cl_calibration-methods
#' @examples
#' # An exact posterior, by its formula, as a fit with draws would be
#' simulate <- function() {
#'   mu <- rnorm(1)
#'   list(parameters = list(mu = mu), data = rnorm(1, mu))
#' }
#' model <- function(y) cl_log_posterior(~ dnorm(y, mu, 1, log = TRUE), ~ dnorm(mu, log = TRUE))
#' checked <- cl_calibrate(simulate, model, replicates = 40, draws = 19, warmup = 100, seed = 1)
#' summary(checked)
#' plot(checked)
#' head(as.data.frame(checked))
NULL

#' @rdname cl_calibration-methods
#' @export
print.cl_calibration <- function(x, digits = 3L, ...) {
  table <- summary(x)
  n <- nrow(x$ranks)
  cat(sprintf("Calibration by %s, ranks among %s each%s\n", count_of(n, "replicate"),
              count_of(x$draws, "draw"), if (x$complete) "" else ", interrupted"))
  print(table, digits = digits)
  cat(sprintf("%.0f evaluations in %.1f s\n", sum(x$diagnostics$evaluations), x$elapsed))
  say <- function(...) {
    writeLines(strwrap(sprintf(...), width = 0.9 * getOption("width"), exdent = 2L))
  }
  wrong <- which(table$p_adjusted < 0.01)
  for (i in wrong) say("! %s: the ranks are not uniform%s", table$quantity[i],
                       rank_shape_text(table[i, ], n))
  if (length(wrong) == 0L) say("no sign that ranks are not uniform (smallest adjusted p-value %s)",
                               format(min(table$p_adjusted), digits = 2L))
  d <- x$diagnostics
  if (any(d$divergent > 0)) say("! %s with divergent iterations",
                                count_of(sum(d$divergent > 0), "replicate"))
  few <- sum(d$size < x$draws, na.rm = TRUE)
  if (few > 0) say("! %s with an effective size below %d: ranks of dependent draws vary more",
                   count_of(few, "replicate"), x$draws)
  told <- which(!is.na(d$warning))
  if (length(told) > 0L) say("! %s with a warning, the first, of replicate %d: %s",
                             count_of(length(told), "replicate"), d$replicate[told[1L]],
                             d$warning[told[1L]])
  invisible(x)
}

# A description of the mean and the spread of ranks, if they are far from those of uniform ranks.
rank_shape_text <- function(row, n) {
  shift <- (row$mean - 0.5) * sqrt(12 * n)
  spread <- (row$sd^2 + (row$mean - 0.5)^2 - 1 / 12) * sqrt(180 * n)
  text <- c(if (abs(shift) > 3) sprintf("draws are too %s", if (shift > 0) "small" else "large"),
            if (abs(spread) > 3) sprintf("draws vary too %s", if (spread > 0) "little" else "much"))
  if (length(text) > 0L) paste(":", paste(text, collapse = ", ")) else ""
}

#' @rdname cl_calibration-methods
#' @export
summary.cl_calibration <- function(object, ...) {
  fractions <- (object$ranks + 0.5) / (object$draws + 1)
  p <- apply(object$ranks, 2L, uniform_p, object$draws)
  structure(data.frame(quantity = colnames(object$ranks), mean = unname(colMeans(fractions)),
                       sd = unname(apply(fractions, 2L, stats::sd)), p_value = unname(p),
                       p_adjusted = unname(stats::p.adjust(p, "holm")), stringsAsFactors = FALSE),
            class = c("summary.cl_sample", "data.frame"))
}

#' @rdname cl_calibration-methods
#' @export
plot.cl_calibration <- function(x, quantities = NULL, max = if (is.null(quantities)) 6 else Inf,
                                level = 0.95, ...) {
  level <- check_number(level, "level", 0.5, 0.9999)
  names <- names_shown(pick_names(colnames(x$ranks), quantities, "quantity"), max, "quantities")
  old <- open_pages(length(names))
  on.exit(close_pages(old))
  n <- nrow(x$ranks)
  p <- band_level(n, x$draws, level)
  bands <- count_bands(n, x$draws, p)
  share <- seq_len(x$draws) / (x$draws + 1)
  for (name in names) {
    plot_ranks(x$ranks[, name], x$draws, name)
    gaps <- cbind(counts_below(x$ranks[, name], x$draws), bands) / n - share
    graphics::matplot(c(0, share, 1), rbind(0, gaps, 0), type = "s", lty = c(1, 2, 2),
                      col = c("black", "grey40", "grey40"), xlab = "", ylab = "",
                      main = sprintf("%s: ECDF - uniform", name))
    graphics::abline(h = 0, col = "grey70")
  }
  invisible(x)
}

# The histogram with at most 20 bars of equal numbers of ranks.
plot_ranks <- function(ranks, draws, name) {
  bars <- Find(function(k) (draws + 1L) %% k == 0L, rev(seq_len(min(20L, draws + 1L))))
  if (bars < 5L) bars <- min(20L, draws + 1L)
  edges <- round(seq(0, draws + 1L, length.out = bars + 1L))
  counts <- tabulate(findInterval(ranks, edges), bars)
  expected <- diff(edges) / (draws + 1)
  limits <- vapply(c(0.005, 0.995), stats::qbinom, expected, length(ranks), expected)
  graphics::plot(range(edges), c(0, max(counts, limits)), type = "n", xlab = "", ylab = "",
                 main = sprintf("%s: ranks", name))
  graphics::rect(edges[-length(edges)], limits[, 1L], edges[-1L], limits[, 2L], col = "grey90",
                 border = NA)
  graphics::rect(edges[-length(edges)], 0, edges[-1L], counts, border = "black")
}

#' @rdname cl_calibration-methods
#' @export
as.data.frame.cl_calibration <- function(x, row.names = NULL, optional = FALSE, ...) {
  data.frame(replicate = rep(x$diagnostics$replicate, ncol(x$ranks)),
             quantity = rep(colnames(x$ranks), each = nrow(x$ranks)),
             value = as.vector(x$values), rank = as.vector(x$ranks), draws = x$draws,
             stringsAsFactors = FALSE)
}
