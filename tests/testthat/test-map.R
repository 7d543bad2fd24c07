# cl_map(), cl_reduce() and cl_kernel() (R/trace-map.R, R/matrix-kernel.R).

skip_on_cran() # long; run by ./dev check

# ---- cl_map -------------------------------------------------------------------------------------

test_that("cl_map() applies a function to every element, for base R and device matrices", {
  x <- matrix(c(-2, 0.5, 3, 1, 0, -0.1), 2, dimnames = list(c("a", "b"), NULL))
  y <- x * 2 + 1
  f <- function(x, y) exp(-x^2) * y + cl_ifelse(x > y, 1, -1)
  want <- exp(-x^2) * y + ifelse(x > y, 1, -1)
  each_engine({
    expect_equal(cl_map(f, x, y), want)
    got <- cl_map(f, as_cl(x), y)
    expect_s4_class(got, "clMatrix")
    expect_equal(as.matrix(got), want)
    expect_equal(cl_map(f, y = y, x = x), want)
    expect_equal(cl_map(f, c(u = 1, v = 2), 3), c(u = exp(-1), v = exp(-4)) * 3 - 1)
    expect_equal(cl_map(function(x) x + 1, 5), 6)
    expect_equal(cl_map(function(x) 7, x), x * 0 + 7)
    expect_equal(cl_map(exp, x), exp(x))
    expect_equal(cl_map(`+`, x, y), x + y)
    expect_equal(as.matrix(cl_map(function(a, b) a * b, as_cl(x), 1:2)), x * 1:2)
    expect_equal(dim(cl_map(function(x) x, matrix(0, 0, 3))), c(0L, 3L))
  })
})

test_each_engine("arguments i and j receive row and column numbers", {
  x <- matrix(runif(12), 3)
  expect_equal(cl_map(function(x, i, j) x * i + j, x), x * row(x) + col(x))
  expect_equal(cl_map(function(j, x) j - x, x, 1), x - 1) # j is the first matrix here
  expect_equal(as.matrix(cl_map(function(x, j) x / j, as_cl(x), j = 2)), x / 2)
  expect_equal(cl_map(function(x, i) i, c(5, 6, 7)), c(1, 2, 3))
  expect_equal(cl_map(function(x, i, j) i >= j, diag(3)), lower.tri(diag(3), TRUE) + 0)
})

test_that("closures, helper functions, loops and lists work", {
  x <- matrix(seq(-2, 2, length.out = 15), 3)
  k <- 1.345
  helper <- function(r) cl_ifelse(abs(r) <= k, r^2 / 2, k * (abs(r) - k / 2))
  coefficients <- c(1, -0.5, 0.25, 2)
  horner <- function(x) {
    value <- 0
    for (a in rev(coefficients)) value <- value * x + a
    value
  }
  each_engine({
    expect_equal(cl_map(function(x) helper(x), x),
                 ifelse(abs(x) <= k, x^2 / 2, k * (abs(x) - k / 2)))
    expect_equal(cl_map(horner, x), 1 - 0.5 * x + 0.25 * x^2 + 2 * x^3)
    both <- cl_map(function(x) list(sine = sin(x), number = 3), x)
    expect_equal(both, list(sine = sin(x), number = x * 0 + 3))
    devices <- cl_map(function(x) list(sin(x), cos(x)), as_cl(x))
    expect_equal(lapply(devices, as.matrix), list(sin(x), cos(x)))
    mode <- "double"
    expect_equal(cl_map(function(x) if (mode == "double") 2 * x else x, x), 2 * x)
    expect_equal(cl_map(function(x) max(x, 0, -1) + min(x, 1) + sum(x, 2, x), x),
                 pmax(0, x) + pmin(x, 1) + 2 * x + 2)
    expect_equal(cl_map(function(x) pmax(x, 0) - pmin(0, x), x), pmax(x, 0) - pmin(x, 0))
    expect_equal(cl_map(function(x) any(x > 1, x < -1) - all(x > 0, x < 1), x),
                 ((x > 1) | (x < -1)) - ((x > 0) & (x < 1)))
    whole <- round(x)
    expect_equal(cl_map(function(x) is.na(x / x - 1), whole), is.na(whole / whole - 1) + 0)
    expect_equal(cl_map(function(x) !(x > 0) | -x > 1, x), (!(x > 0) | -x > 1) + 0)
    expect_equal(cl_map(function(x) log(abs(x) + 1, 3) + round(x) + trunc(x), x),
                 log(abs(x) + 1, 3) + round(x) + trunc(x))
    expect_equal(cl_map(function(x) round(x, 1) + round(1e3 * x, -2) + log(2 + x, abs(x) + 2), x),
                 round(x, 1) + round(1e3 * x, -2) + log(2 + x, abs(x) + 2))
    expect_equal(cl_map(function(x) lgamma(x + 3) - cl_pnorm(x, lower.tail = FALSE), x),
                 lgamma(x + 3) - pnorm(-x))
    expect_equal(cl_map(function(x) cl_inv_logit(x) + cl_log1p_exp(x) + cl_atan2(x, 2), x),
                 plogis(x) + log1p(exp(x)) + atan2(x, 2))
  })
})

test_that("the error for a function that branches on data names cl_ifelse()", {
  x <- diag(2)
  turns <- list(
    function(x) if (x > 0) x else -x,
    function(x) while (x > 1) x <- x / 2,
    function(x) x > 0 && x < 1,
    function(x) x > 0 || x < 1,
    function(x) as.logical(x),
    function(x) {
      helper <- function(u) if (u == 0) 1 else u
      helper(x)
    })
  for (f in turns) for (y in list(x, on_host(as_cl(x)))) {
    expect_refused("f", on_host(cl_map(f, y)), says = "cl_ifelse")
  }
  expect_refused("combine", cl_reduce(x, combine = function(u, v) if (u > v) u else v),
                 says = "cl_ifelse")
})

test_each_engine(
  "elements are numbers: ifelse(), c(), densities and questions about their type work", {
  x <- matrix(c(-2, 0.5, 3, 1, 0, -0.1), 2)
  functions <- list(
    function(x) ifelse(x > 0, sqrt(abs(x)), 0), function(x) as.numeric(x) + max(0, x, 1),
    function(x) { both <- c(x, 1); sum(both) * both[1] + mean(c(both, x)) + max(both) },
    function(x) dgamma(x + 3, 2, 1.5) + dt(x, 3, log = TRUE) + pexp(x + 2) + beta(x + 3, 2),
    function(x) round(x, 320) + round(1e6 * x, -309) + log(x = abs(x) + 2, base = 3),
    function(x) if (is.numeric(x) && class(x) == "numeric" && typeof(x) == "double") x else 0,
    function(x) is.logical(x > 0) + is.integer(x) + is.atomic(x) + (mode(x) == "numeric") + x,
    function(x) sapply(x, function(u) u^2) + Reduce(`+`, list(x, 1, x)),
    function(x) tryCatch(x + log(2), error = function(e) 0))
  for (f in functions) expect_equal(cl_map(f, x), apply(x, 1:2, f))
})

test_that("questions of identity are rejected like if(), in called functions too", {
  x <- diag(2)
  outer_helper <- function(u) inner_helper(u)
  inner_helper <- function(u) if (identical(u, 0)) 1 else u
  made <- local({
    scale <- 2
    function(u) if (isTRUE(u > 0)) scale else -scale
  })
  questions <- list(
    isTRUE = function(x) if (isTRUE(x > 0)) 1 else 2,
    isFALSE = function(x) if (isFALSE(x > 0)) 1 else 2,
    identical = function(x) if (identical(x, 0)) 1 else x,
    `%in%` = function(x) x %in% c(0, 1), match = function(x) match(x, 0:1, 0L),
    all.equal = function(x) isTRUE(all.equal(x, 0)), anyNA = function(x) anyNA(x),
    isTRUE = function(x) if (base::isTRUE(x > 0)) 1 else 2,
    identical = outer_helper, identical = function(x) outer_helper(x), isTRUE = made,
    isTRUE = function(x, test = isTRUE(x > 0)) if (test) 1 else 2,
    identical = function(x) {
      same <- function(u) identical(u, 1)
      if (same(x)) 1 else 2
    },
    isTRUE = function(x) Reduce(function(a, b) if (isTRUE(a > b)) a else b, list(x, 0)))
  for (k in seq_along(questions)) for (y in list(x, on_host(as_cl(x)))) {
    e <- expect_fault(on_host(cl_map(questions[[k]], y)), "argument", argument = "f")
    expect_match(conditionMessage(e), names(questions)[k], fixed = TRUE)
    expect_match(conditionMessage(e), "cl_ifelse")
  }
  e <- expect_fault(cl_reduce(x, combine = function(u, v) if (identical(u, v)) u else v),
                    "argument", argument = "combine")
  # For other values than elements they are R's own, wherever the function is defined.
  kind <- "huber"
  class <- 2 # variables keep their names
  expect_equal(cl_map(function(x) if (isTRUE(class == 2)) x * class else x, 3), 6)
  weight <- function(x, k) if (identical(kind, "huber") && isTRUE(k > 0)) k / abs(x) else 1
  expect_equal(cl_map(function(x) weight(x, 2), matrix(1:4, 2)), 2 / matrix(1:4, 2))
  total <- 0
  count <- function(x) {
    total <<- total + is.numeric(kind) + inherits(kind, "character") + base::is.vector(c(1, 2))
    identical <- function(a, b) a * b # the user's own
    identical(x, 3)
  }
  expect_equal(cl_map(count, 1:3), c(3, 6, 9))
  expect_equal(total, 2)
})

test_that("a loop over an element is an error, whether R compiles the function or not", {
  x <- matrix(1:4, 2)
  inner <- function(x) { s <- 0; for (v in x) s <- s + v; s }
  outer <- function(x) inner(x) + 1
  old <- compiler::enableJIT(0)
  on.exit(compiler::enableJIT(old))
  for (f in list(inner, outer)) expect_refused("f", cl_map(f, x), says = "a loop cannot run over")
  expect_equal(cl_map(function(x) { for (k in 1:3) x <- x + k; x }, x), x + 6)
})

test_that("operations that elements do not have are named", {
  x <- diag(2)
  calls <- list(signif = function(x) signif(x, 2), `%*%` = function(x) x %*% x,
                integrate = function(x) integrate(dnorm, 0, x),
                strsplit = function(x) strsplit(x, "a"))
  for (name in names(calls)) {
    e <- expect_fault(on_host(cl_map(calls[[name]], x)), "argument", argument = "f")
    expect_match(conditionMessage(e), name, fixed = TRUE)
  }
  vector <- 1:3
  expect_match(conditionMessage(expect_fault(cl_map(function(x) x + vector, x), "argument")),
               "elements and numbers")
  inner <- on_host(as_cl(diag(3)))
  expect_match(conditionMessage(expect_fault(cl_map(function(x) x + inner, x), "argument")),
               "elements and numbers")
  expect_refused("f", cl_map(function(x) range(x), x), cl_map(function(x) "text", x),
                 cl_map(function(x) NULL, x), cl_map(function(x) stop("own"), x), cl_map("exp", x))
  expect_refused("...", cl_map(exp), cl_map(exp, "a"), cl_map(`+`, diag(2), diag(3)))
})

# ---- cl_reduce ----------------------------------------------------------------------------------

test_each_engine("cl_reduce() sums, multiplies and finds extremes of all, rows and columns", {
  x <- matrix(sin(1:35) + 2, 5, dimnames = list(letters[1:5], NULL))
  apply_margin <- function(f, margin, y = x) {
    switch(margin, all = f(y), rows = apply(y, 1, f), cols = unname(apply(y, 2, f)))
  }
  for (margin in c("all", "rows", "cols")) {
    expect_equal(cl_reduce(x, margin = margin), apply_margin(sum, margin))
    expect_equal(cl_reduce(x, combine = "*", identity = 1, margin = margin),
                 apply_margin(prod, margin))
    expect_equal(cl_reduce(x, combine = "max", identity = -Inf, margin = margin),
                 apply_margin(max, margin))
    expect_equal(cl_reduce(x, combine = function(u, v) min(u, v), identity = Inf, margin = margin),
                 apply_margin(min, margin))
    expect_equal(cl_reduce(x, function(x) log(x)^2, margin = margin),
                 apply_margin(function(v) sum(log(v)^2), margin))
    expect_equal(cl_reduce(x, function(x, y, i, j) x * y + i - j, margin = margin, y = 0.5),
                 apply_margin(sum, margin, x * 0.5 + row(x) - col(x)))
    expect_equal(cl_reduce(x, finalize = function(s) sqrt(s) + 1, margin = margin),
                 apply_margin(function(v) sqrt(sum(v)) + 1, margin))
    log_add <- function(u, v) max(u, v) + log1p(exp(-abs(u - v)))
    expect_equal(cl_reduce(x, combine = log_add, identity = -1e300, margin = margin),
                 apply_margin(function(v) log(sum(exp(v))), margin), tolerance = 1e-12)
    got <- cl_reduce(as_cl(x), function(x) x^2, margin = margin)
    expect_s4_class(got, "clMatrix")
    expect_equal(dim(got), switch(margin, all = c(1L, 1L), rows = c(5L, 1L), cols = c(1L, 7L)))
    expect_equal(as.vector(got), as.vector(apply_margin(function(v) sum(v^2), margin)))
  }
})

test_that("reductions of large, long, wide, empty and one-dimensional data", {
  shapes <- list(c(1, 1), c(0, 3), c(3, 0), c(1, 2000), c(2000, 1), c(257, 129), c(3000, 3),
                 c(3, 3000))
  log_add <- function(u, v) max(u, v) + log1p(exp(-abs(u - v)))
  each_engine(for (s in shapes) {
    x <- matrix(cos(seq_len(prod(s))), s[1], s[2])
    expect_equal(cl_reduce(x), sum(x))
    expect_equal(cl_reduce(x, margin = "rows"), rowSums(x))
    expect_equal(cl_reduce(x, margin = "cols"), colSums(x))
    expect_equal(cl_reduce(x, combine = log_add, identity = -1e300, margin = "rows"),
                 if (s[2] > 0) log(rowSums(exp(x))) else rep(-1e300, s[1]))
    expect_equal(cl_reduce(x, combine = log_add, identity = -1e300),
                 if (prod(s) > 0) log(sum(exp(x))) else -1e300)
  })
  expect_equal(cl_reduce(c(a = 1, b = 2)), 3)
  expect_equal(cl_reduce(1:10, function(x, i) x * i), sum((1:10)^2))
  x <- matrix(sin(1:5000), 50)
  each_engine({
    first <- cl_reduce(x, function(x) exp(x))
    for (k in 1:5) expect_identical(cl_reduce(x, function(x) exp(x)), first)
  })
})

test_that("arguments of cl_reduce() are checked", {
  x <- diag(2)
  expect_refused("margin", cl_reduce(x, margin = "up"))
  expect_refused("identity", cl_reduce(x, identity = c(0, 1)), cl_reduce(x, identity = NA))
  expect_refused("combine", cl_reduce(x, combine = "mean"), cl_reduce(x, combine = 3),
                 cl_reduce(x, combine = function(u, v) 1), cl_reduce(x, combine = function(u) u))
  expect_refused("map", cl_reduce(x, map = "exp"), cl_reduce(x, map = function(x) list(x)))
  expect_refused("finalize", cl_reduce(x, finalize = function(s) "a"))
  expect_refused("x", cl_reduce("a"))
  # Elements that a traced function stores are not used afterwards.
  kept <- NULL
  cl_reduce(x, combine = function(u, v) {
    kept <<- u
    u + v
  })
  expect_fault(cl_map(function(x) x + kept, x), "argument")
})

# ---- cl_kernel ----------------------------------------------------------------------------------

axpy_source <- "
__kernel void axpy(double a, __global const double *x, int x_ld, __global const double *y, int y_ld,
                   __global double *out, int out_ld, int rows, int columns) {
  const int i = get_global_id(0), j = get_global_id(1);
  if (i >= rows || j >= columns) return;
  out[i + j * (long)out_ld] = a * x[i + j * (long)x_ld] + y[i + j * (long)y_ld];
}"
axpy_arguments <- c(a = "double", x = "in", y = "in", out = "out", rows = "int", columns = "int")

test_on_device("cl_kernel() runs the user's OpenCL C", {
  x <- matrix(runif(70 * 3), 70)
  axpy <- cl_kernel(axpy_source, "axpy", axpy_arguments)
  expect_output(print(axpy), "user code")
  d <- as_cl(x)
  got <- axpy(2, d, d + 1, c(70, 3), 70, 3, global = c(70, 3), local = c(32, 1))
  expect_equal(as.matrix(got), 2 * x + x + 1)
  got <- axpy(columns = 3, rows = 70, a = -1, x = d, y = d, out = c(70, 3), global = c(70, 3))
  expect_equal(as.matrix(got), x * 0)
  expect_equal(as.matrix(d), x)
  expect_fault(axpy(2, d), "argument")
  expect_refused("x", axpy(2, x, d, c(70, 3), 70, 3, global = c(70, 3)))
  expect_refused("a", axpy("a", d, d, c(70, 3), 70, 3, global = c(70, 3)))
  expect_refused("out", axpy(2, d, d, 5, 70, 3, global = c(70, 3)))
  expect_refused("rows", axpy(2, d, d, c(70, 3), 0.5, 3, global = c(70, 3)))
  expect_refused("global", axpy(2, d, d, c(70, 3), 70, 3, global = 0))
  expect_refused("local", axpy(2, d, d, c(70, 3), 70, 3, global = c(70, 3), local = 8))
  e <- expect_fault(cl_kernel("__kernel void bad(int x) { syntax error }", "bad",
                              c(x = "int", y = "out")), "build")
  expect_true(nzchar(e$log))
  expect_error(cl_kernel(axpy_source, "missing", axpy_arguments), class = "statcl_error")
  e <- expect_error(cl_kernel(axpy_source, "axpy", axpy_arguments[-1])(
    d, d, c(70, 3), 70, 3, global = c(70, 3)), class = "statcl_error")
})

test_that("cl_kernel() checks its arguments, and needs a device", {
  expect_refused("source", cl_kernel(1, "f", axpy_arguments))
  expect_refused("name", cl_kernel(axpy_source, "f g", axpy_arguments))
  expect_refused("arguments", cl_kernel(axpy_source, "axpy", c("in", "out")),
                 cl_kernel(axpy_source, "axpy", c(x = "in")))
  expect_fault(on_host(cl_kernel(axpy_source, "axpy", axpy_arguments)), "no_device")
})

test_each_engine("an expression used many times is visited once", {
  square <- function(u, v) {
    s <- u + v
    for (k in 1:40) s <- (s + s) / 2
    s
  }
  expect_equal(cl_reduce(c(1, 2, 3), combine = square, identity = 0), 6)
})

test_each_engine(
  "names of a vector are those of its rows; any() and all() of one element are 0 or 1", {
  expect_equal(cl_reduce(c(a = 1, b = 2), margin = "rows"), c(a = 1, b = 2))
  expect_equal(cl_reduce(c(a = 1, b = 2), margin = "cols"), 3)
  expect_equal(cl_map(function(x) any(x), 3), 1)
  expect_equal(cl_map(function(x) all(x), c(0, 3)), c(0, 1))
})

test_that("arguments that are calls are data and are not evaluated", {
  ran <- 0
  home <- environment()
  call <- bquote(assign("ran", .(1), envir = .(home)))
  attempts <- list(
    function() cl_op("exp", call), function() cl_op("add", 1, call),
    function() cl_op("ifelse", call, 1, call), function() pmin(as_cl(1), call),
    function() pmax(as_cl(1), call, na.rm = TRUE), function() sum(as_cl(1), call),
    function() max(as_cl(1), call), function() as_cl(1) + call, function() call * as_cl(1),
    function() cl_ifelse(as_cl(1), call, 0), function() cl_map(function(x) x, call),
    function() cl_reduce(call), function() cl_atan2(as_cl(1), call),
    function() cl_check_gradient(function(v) stop("reached"), call),
    function() cl_eval(call), function() cbind(as_cl(1), call),
    function() cl_sample(function(a) structure(-a^2 / 2, gradient = -a), list(a = call)),
    function() cl_log_posterior(function(a) structure(0, gradient = list(a = 0)))(a = call),
    function() cl_batch_solve(call), function() cl_cov(call, kernel = k_exp_quad()),
    function() cl_gp(1:9, call), function() cl_glm(1:9, call),
    function() update(k_exp_quad(), sd = call),
    function() cl_use(call), function() round(as_cl(1), call))
  for (attempt in attempts) try(attempt(), silent = TRUE)
  expect_identical(ran, 0)
})

test_that("arguments of formula methods are evaluated once", {
  count <- 0
  once <- function(x) {
    count <<- count + 1
    x
  }
  d <- data.frame(y = c(0, 1, 0, 1, 1, 0, 1, 0), x = 1:8, n = 2, g = rep(1:2, 4))
  calls <- list(
    function() cl_glm(y ~ x, once(d)), function() cl_glm(y ~ x, d, offset = once(x / 9)),
    function() cl_glm(y ~ x, d, family = "binomial_logit", trials = once(n)),
    function() cl_glm(y ~ x, d, family = "binomial_logit", trials = once(2)),
    function() cl_glm(y ~ x, d, subset = once(x < 8)),
    function() cl_glm(y ~ x, d, na.action = once(na.omit)),
    function() cl_glm(y ~ x, d, weights = once(rep(1, 8))),
    function() cl_gp(y ~ x, once(d), starts = 1), function() cl_batch_lm(y ~ x, once(d), group = g),
    function() cl_batch_lm(y ~ x, d, group = once(g)),
    function() cl_gp(y ~ x, d, variance = once(n), starts = 1))
  on_host(for (f in calls) {
    count <- 0
    suppressWarnings(f())
    expect_identical(count, 1, info = deparse(body(f)))
  })
})
