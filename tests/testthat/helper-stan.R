# Programs for the tests of cl_stan(), each held against an R function of the same density.

# A row: declarations of parameters, the statements of the model, the point, and the log density as
# an R function of the point and the data. `data`: declarations and values.
stan_case <- function(parameters, model, point, density, data = "", values = list(),
                      functions = "", transformed = "") {
  block <- function(name, text) if (nzchar(text)) sprintf("%s {\n%s\n}\n", name, text) else ""
  list(code = paste0(block("functions", functions), block("data", data),
                     block("parameters", parameters),
                     block("transformed parameters", transformed), block("model", model)),
       point = point, density = density, values = values)
}

# Values agree to 10 digits, gradients with differences.
check_stan_case <- function(case, name, tolerance = 1e-7, digits = 1e-10) {
  b <- cl_stan(code = case$code)(case$values)
  found <- do.call(b, case$point)
  want <- case$density(case$point)
  compiled <- environment(b)$state[["namedFALSE"]]
  expect_false(environment(compiled)$retrace, label = name)
  expect_equal(as.vector(found), as.vector(want), tolerance = digits, label = name)
  gradient <- attr(found, "gradient")
  expect_equal(names(gradient), names(case$point), label = name)
  for (p in names(case$point)) {
    x <- case$point[[p]]
    if (isTRUE(attr(case$density, "flat"))) next
    for (i in seq_along(x)) {
      h <- 1e-4 * max(1, abs(x[i]))
      at <- function(t) {
        moved <- case$point
        moved[[p]][i] <- x[i] + t * h
        as.vector(do.call(b, moved))
      }
      slope <- (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
      expect_equal(gradient[[p]][i], slope, tolerance = tolerance, label = paste(name, p, i))
    }
  }
}

# Terms of the target, with the R function of their sum.
check_sum <- function(terms, density, point, parameters, data = "", values = list(), ...) {
  check_stan_case(stan_case(parameters, paste0("target += ", terms, ";", collapse = "\n"), point,
                            function(p) sum(density(p)), data, values, ...),
                  paste(terms, collapse = " "))
}
