# The rows of R/density-table.R in the loops of the tests.

# The functions of the table by name.
density_formulas <- function() lapply(density_table, `[[`, "formula")

# list(name, kinds): the elementwise functions, once for each choice of arguments that stand for
# one another.
density_cases <- function(table = density_table) {
  all <- lapply(names(table), function(name) {
    row <- table[[name]]
    if (length(row$kinds) == 0L) return(NULL)
    left_out <- if (is.null(row$instead)) list(NULL) else list(names(row$instead), row$instead)
    lapply(left_out, function(out) {
      list(name = name, kinds = row$kinds[setdiff(names(row$kinds), out)])
    })
  })
  do.call(c, all)
}

# Arguments that have no derivatives.
data_of <- function(kinds) names(kinds)[kinds %in% c("count", "trials", "order")]

# ---- gradients -----------------------------------------------------------------------------------

# Differences of the program's own values, of fourth order.
differences <- function(f, point) {
  slope <- function(k, i, h) {
    up <- down <- point
    up[[k]][i] <- up[[k]][i] + h
    down[[k]][i] <- down[[k]][i] - h
    (as.numeric(do.call(f, up)) - as.numeric(do.call(f, down))) / (2 * h)
  }
  lapply(seq_along(point), function(k) {
    vapply(seq_along(point[[k]]), function(i) {
      h <- 1e-3 * max(abs(point[[k]][i]), 0.1)
      (4 * slope(k, i, h / 2) - slope(k, i, h)) / 3
    }, 0)
  })
}

# The sum of density(...) over its values; `further` are arguments that are no parameters.
expect_slope <- function(name, point, further = list()) {
  density <- as.name(name)
  arguments <- lapply(names(point), as.name)
  names(arguments) <- names(point)
  f <- function() NULL
  formals(f) <- lapply(point, function(x) quote(expr = ))
  body(f) <- as.call(list(quote(sum), as.call(c(density, arguments, further))))
  environment(f) <- globalenv()
  model <- cl_gradient(f)
  found <- do.call(model, point)
  label <- paste(deparse(body(f)), collapse = " ")
  if (exists(name, asNamespace("stats")) || exists(name, baseenv())) {
    want <- do.call(f, point)
    expect(abs(as.numeric(found) - want) <= 1e-10 * max(1, abs(want)),
           sprintf("%s is %.17g, not %.17g", label, as.numeric(found), want))
  }
  want <- unlist(differences(model, point))
  got <- unlist(attr(found, "gradient"))
  worst <- max(abs(got - want) / pmax(1, abs(want)))
  expect(worst <= 1e-7, sprintf("the gradient of %s is off by %.3g", label, worst))
}

# Points by kind (R/density-table.R).
points <- list(
  real = c(-1, 0.5, 2, 3, 4), positive = c(0.2, 1, 3, 2, 0.7),
  share = c(0.1, 0.5, 0.3, 0.9, 0.7), count = c(0, 1, 3, 2, 7),
  place = 0.3, scale = 2, spread = c(1, 2, 3, 4, 5), shape = c(2, 1, 0.3, 4, 5),
  power = c(0.5, 1, 2, 10, 0.1), lower = -2, upper = 13, trials = 10, order = 2)

# A row of the table: every argument by itself a vector or a number.
expect_slopes <- function(name, kinds, flags) {
  at <- stats::setNames(points[kinds], names(kinds))
  if (isTRUE(flags$log.p) && "p" %in% names(at)) at$p <- log(at$p)
  given <- data_of(kinds)
  expect_slope(name, at[setdiff(names(at), given)], c(at[given], flags))
}

# The slopes of a case for all its flags.
expect_case_slopes <- function(case) {
  flags <- list(list())
  if (grepl("^d", case$name)) flags <- list(list(log = TRUE), list(log = FALSE))
  if (grepl("^[pq]", case$name)) {
    flags <- lapply(0:3, function(k) list(lower.tail = k < 2, log.p = k %% 2 == 1))
  }
  for (f in flags) expect_slopes(case$name, case$kinds, f)
}

# ---- another table -------------------------------------------------------------------------------

# The code with further rows in the table.
with_densities <- function(rows, code) {
  table <- density_table
  set <- function(table) {
    utils::assignInNamespace("density_table", table, "statcl")
    tracing$functions <- tracing$merged <- NULL # made of the table
  }
  on.exit(set(table))
  set(c(table, rows))
  code
}
