# The table of densities (R/density-table.R): a density is added by its row.

# Laplace's distribution, which R does not have.
laplace <- density_row(function(x, location = 0, scale = 1, log = FALSE) {
  valid <- above_zero(scale)
  s <- where(valid, scale, NaN)
  value <- -abs(from_centre(x, location, s)) - log_of_positive(2 * s)
  density_value(value, not_infinite(x), valid, log, x, location, scale)
}, x = "real", location = "place", scale = "scale", note = "double exponential")

test_that("a row is enough for a density to be evaluated, differentiated and tested", {
  x <- c(-1, 0.5, 2, 3, 4)
  direct <- function(x, m, s) exp(-abs(x - m) / s) / (2 * s)
  with_densities(list(dlaplace = laplace), on_host({
    model <- cl_gradient(function(m, s) sum(dlaplace(x, m, s, log = TRUE)))
    found <- model(m = 0.3, s = 2)
    expect_equal(as.numeric(found), sum(log(direct(x, 0.3, 2))))
    expect_equal(attr(found, "gradient"),
                 list(m = sum(sign(x - 0.3)) / 2, s = sum(abs(x - 0.3)) / 4 - 5 / 2))
    expect_identical(as.numeric(model(m = 0, s = -1)), NaN)
    expect_equal(as.numeric(cl_gradient(function(s) sum(dlaplace(x, scale = s)))(s = 2)),
                 sum(direct(x, 0, 2)))
    # The loop over gradients; the help page.
    expect_case_slopes(density_cases(list(dlaplace = laplace))[[1L]])
    expect_match(get("density_aliases", asNamespace("statcl"))(), "dlaplace")
  }))
  expect_null(density_table$dlaplace)
  expect_fault(on_host(cl_gradient(function(s) dlaplace(1, scale = s))(s = 2)), "argument")
})

test_that("the kinds of a row are those of R's arguments; the help page has all rows", {
  for (name in names(density_table)) {
    row <- density_table[[name]]
    if (length(row$kinds) == 0L) next
    of <- setdiff(names(formals(row$formula)), c("log", "lower.tail", "log.p", "ncp"))
    expect_identical(names(row$kinds), of, label = name)
    expect_true(all(row$kinds %in% names(points)), label = name)
  }
  text <- density_help_table()
  for (name in of_base_r(names(density_table))) {
    expect_match(text, sprintf("`%s`", name), fixed = TRUE)
  }
  expect_match(text, "| `dgamma`, `pgamma` | `shape`, `rate` or `scale` |", fixed = TRUE)
})
