# The table of elementwise operations, held against their meanings in base R (in_base_r of
# helper-trace.R, or the function of that name).

# Tolerances where base R has fewer digits: small differences of large terms, derivatives by
# differences.
base_r_digits <- c(stirling = 1e-13, neg_binomial = 1e-13, neg_binomial_slope = 1e-12,
                   stirling_slope = 1e-13, t_power_slope = 1e-13,
                   vapply(tails, function(f) 1e-13, 0), 0 * tail_slopes + 1e-7)

test_that("every operation of the table agrees with base R, on both engines and in cl_map()", {
  table <- cl_operations()
  expect_false(anyDuplicated(paste(table$type, table$name)) > 0)
  numbers <- list(c(0.3, -2, 5, 0, 1.5, NA, Inf), c(2, 0.5, -3, 1, 0.25, 3, -Inf),
                  c(1, 2, 3, 4, 5, 6, 7))
  check <- function(rows) for (row in rows) {
    name <- table$name[row]
    f <- meaning_in_base_r(name)
    expect(!is.null(f), sprintf("no function to hold '%s' against: add it to in_base_r", name))
    operands <- numbers[seq_len(table$arity[row])]
    want <- suppressWarnings(do.call(f, operands)) + 0
    tol <- if (name %in% names(base_r_digits)) base_r_digits[[name]] else 1e-14
    got <- as.vector(do.call(cl_op, c(name, lapply(operands, as_cl))))
    expect(same_numbers(got, want, tol), sprintf("'%s' is not that of base R", name))
    expect(same_numbers(do.call(cl_op, c(name, operands)), want, tol),
           sprintf("'%s' by cl_map() is not that of base R", name))
    expect_true(nzchar(table$derivative[row]))
  }
  rows <- which(table$type == "elementwise")
  on_host(check(rows))
  on_device(check(rows[full_or_quick(TRUE, c(TRUE, FALSE, FALSE))])) # a kernel each
})
