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

# The elements of a parameter that move together. Attribute "moves" of a density: of its square
# matrices only the "lower" triangle is used, or they are "symmetric".
stan_moves <- function(x, kind) {
  if (is.null(kind) || !is.matrix(x) || nrow(x) != ncol(x)) return(as.list(seq_along(x)))
  lower <- which(lower.tri(x, TRUE))
  if (kind == "lower") return(as.list(lower))
  lapply(lower, function(i) unique(c(i, t(array(seq_along(x), dim(x)))[i])))
}

# Values agree to 10 digits with the R function, gradients with its differences.
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
    for (i in stan_moves(x, attr(case$density, "moves"))) {
      h <- 1e-4 * max(1, abs(x[i]))
      at <- function(t) {
        moved <- case$point
        moved[[p]][i] <- x[i] + t * h
        as.vector(case$density(moved))
      }
      slope <- (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
      expect_equal(sum(gradient[[p]][i]), slope, tolerance = tolerance,
                   label = paste(c(name, p, i), collapse = " "))
    }
  }
}

# Terms of the target, with the R function of their sum.
check_sum <- function(terms, density, point, parameters, data = "", values = list(), ...) {
  total <- structure(function(p) sum(density(p)), moves = attr(density, "moves"))
  check_stan_case(stan_case(parameters, paste0("target += ", terms, ";", collapse = "\n"), point,
                            total, data, values, ...), paste(terms, collapse = " "))
}
