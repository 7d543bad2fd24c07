# The tree that R gets of a Stan program, and the conditions of programs that are wrong. What the
# reader accepts and refuses is in tests/core/test_stan*.c.

read <- function(code, file = "", include = character()) {
  .Call(statcl:::r_stan_read, code, file, include)
}

test_that("a program becomes a tree", {
  p <- read("functions { real f(data real x); real f(data real x) { return x; } }
data { int<lower=1> n; array[n] vector[2] y; tuple(int, real) t; }
parameters { corr_matrix[3] R; real<offset=1> m; }
model {
  y[1, 1:] ~ normal(m, f(t.2)) T[0, ];
  for (i in 1:n) target += -m * i;
}")
  expect_named(p, c("functions", "data", "transformed_data", "parameters",
                    "transformed_parameters", "model", "generated_quantities"))
  expect_identical(p$transformed_data, list())
  expect_null(p$functions[[1L]]$body)
  expect_identical(p$functions[[2L]]$args[[1L]],
                   list(name = "x", type = list(base = "real", depth = 0L), data = TRUE))
  n <- list(kind = "var", line = 2L, type = list(base = "int", depth = 0L), name = "n",
            block = "data", fun = 0L)
  y <- p$data[[2L]]
  expect_identical(y$type, list(base = "vector", depth = 1L))
  expect_identical(y$sizes[[1L]], n)
  expect_identical(y$sizes[[2L]]$value, 2L)
  expect_identical(p$data[[1L]]$constraint$kind, "range")
  expect_identical(p$data[[1L]]$constraint$lower$value, 1L)
  expect_null(p$data[[1L]]$constraint$upper)
  expect_identical(p$data[[3L]]$type$parts[[2L]], list(base = "real", depth = 0L))
  expect_length(p$data[[3L]]$parts, 2L)
  expect_identical(p$parameters[[1L]]$constraint$kind, "corr_matrix")
  expect_length(p$parameters[[1L]]$sizes, 2L)
  expect_identical(p$parameters[[2L]]$constraint$kind, "offset")

  s <- p$model[[1L]]
  expect_identical(s[c("kind", "line", "dist", "name", "user", "fun", "truncated")],
                   list(kind = "sample", line = 5L, dist = "normal", name = "normal_lpdf",
                        user = FALSE, fun = 0L, truncated = TRUE))
  expect_identical(s$lhs$type, list(base = "vector", depth = 0L))
  expect_identical(lapply(s$lhs$indices, `[[`, "kind"), list("single", "range"))
  expect_null(s$lhs$indices[[2L]]$upper)
  expect_null(s$upper)
  call <- s$args[[2L]]
  expect_identical(call[c("kind", "name", "user", "fun")],
                   list(kind = "call", name = "f", user = TRUE, fun = 2L))
  expect_identical(call$args[[1L]][c("kind", "i")], list(kind = "tuple_get", i = 2L))
})

test_that("operators, numbers and text", {
  p <- read("model { print(\"\u00e9\", 1 + 2.5 ^ 2, 3i, {1, 2}[1], (1 ? [1] : [2])');
             real x; x += 1; }")
  print <- p$model[[1L]]
  expect_identical(print$args[[1L]]$value, "\u00e9")
  expect_identical(print$args[[2L]]$op, "+")
  expect_identical(print$args[[2L]]$args[[2L]]$op, "^")
  expect_identical(print$args[[2L]]$args[[2L]]$args[[1L]]$value, 2.5)
  expect_identical(print$args[[3L]][c("kind", "value")], list(kind = "imag", value = 3))
  expect_identical(print$args[[4L]]$base$kind, "array")
  expect_identical(print$args[[5L]][c("op", "type")],
                   list(op = "t", type = list(base = "vector", depth = 0L)))
  expect_identical(p$model[[3L]]$op, "+=")
})

test_that("a program that is wrong is a classed condition with its place", {
  e <- tryCatch(read("data {\n  real \u00e9x;\n}", "my.stan"), error = identity)
  expect_s3_class(e, c("statcl_error_stan", "statcl_error"), exact = FALSE)
  expect_identical(e[c("line", "column", "file", "text")],
                   list(line = 2L, column = 8L, file = "my.stan", text = "  real \u00e9x;"))
  expect_match(conditionMessage(e),
               "my.stan, line 2, column 8: .*\n    real \u00e9x;\n         \\^$")
  expect_error(read("model { print(\"\xe9\"); }"), "not valid UTF-8", class = "statcl_error_stan")
  latin <- "model { print(\"\xe9\"); }"
  Encoding(latin) <- "latin1"
  expect_identical(read(latin)$model[[1L]]$args[[1L]]$value, "\u00e9")
})

test_that("programs that are nested too deeply are refused, by the reader or for R's stack", {
  nested <- function(n) paste0("model { target += ", strrep("exp(", n), "1", strrep(")", n), "; }")
  expect_error(cl_stan(code = nested(2000)), "nested .*deep", class = "statcl_error_stan")
  old <- options(expressions = 500)
  on.exit(options(old))
  expect_error(cl_stan(code = nested(900)), "nested .*deep", class = "statcl_error_stan")
})

test_that("includes are looked for in the folders given", {
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  writeLines("real mu;", file.path(folder, "mu.stan"))
  code <- "parameters {\n#include mu.stan\n}"
  expect_identical(read(code, include = c("nowhere", folder))$parameters[[1L]]$name, "mu")
  expect_error(read(code), "'include'", class = "statcl_error_stan")
  writeLines("#include mu.stan", file.path(folder, "mu.stan"))
  expect_error(read(code, include = folder), "mu.stan, line 1, .* includes itself",
               class = "statcl_error_stan")
})

test_that("a function that is not available for parameters is shown, also where only values tell", {
  use <- "bessel_first_kind(0, x)"
  known <- sprintf("parameters { real x; }\nmodel { target += 1 + %s; }", use)
  local <- sprintf("functions {\n  real f(real x) { return %s; }\n}
                    parameters { real a; } model { target += f(a); }", use)
  made <- sprintf("parameters { real a; } transformed parameters { real x = a; }
                   model { target += %s; }", use)
  for (run in list(function() cl_stan(code = known), function() cl_stan(code = made),
                   function() cl_stan(code = local)()(a = 1),
                   function() cl_stan(code = local)()$unconstrained(1))) {
    e <- expect_fault(run(), "stan")
    expect_identical(e$line, 2L)
    expect_identical(e$column, as.integer(regexpr("bessel", e$text)))
    said <- strsplit(conditionMessage(e), "\n")[[1L]]
    expect_match(said[1L], "'bessel_first_kind' is available for data and generated quantities")
    expect_identical(said[3L], paste0(strrep(" ", e$column + 1L), "^"))
  }
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  writeLines(c("", "target += bessel_first_kind(0, a);"), file.path(folder, "one.stan"))
  expect_fault(cl_stan(code = "parameters { real a; } model {\n#include one.stan\n}",
                       include = folder), "stan", line = 2L, column = 11L, file = "one.stan")
})
