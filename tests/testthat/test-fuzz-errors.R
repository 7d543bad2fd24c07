# Malformed arguments: a function works, or it raises an error of this package.

skip_on_cran() # long; run by ./dev check

# Messages that R itself raises before any function of the package is called, and errors of the
# caller's functions.
not_ours <- c("unused argument", "non-numeric argument to binary operator")

test_that("every error due to a malformed argument or object has a class of the package", {
  found <- on_host({
    quick <- function(n) seq(1L, n, by = full_or_quick(1L, 2L))
    fuzz(fuzz_calls(), quick)
  })
  found <- found[!grepl(paste(not_ours, collapse = "|"), found)]
  expect_identical(unique(found), character())
})

test_that("errors of single calls have classes of the package", {
  each_engine({
    x <- as_cl(diag(3))
    cl_free(x)
    for (type in c("O", "1", "I", "F", "M", "2")) expect_fault(norm(x, type), "stale")
    empty <- new("clMatrix")
    for (f in list(sum, exp, as.matrix, cl_chol, function(e) e + 1, solve, rowSums, mean)) {
      error <- tryCatch({
        on_base(f(empty))
        NULL
      }, error = function(e) e)
      expect_true(is.null(error) || inherits(error, "statcl_error"))
    }
  })
  expect_fault(cl_ifelse(matrix(1, 2, 2), matrix(1, 3, 3), 1), "argument")
  expect_fault(cl_matrix(0, 2^20, 2^20), "memory")
  expect_refused("device", cl_use("\xff"))
  expect_refused("columns", k_exp_quad(columns = globalenv()), k_matern52(columns = list(1)))
})

test_that("errors name damaged fits and kernels, in every function", {
  d <- data.frame(y = c(0, 1, 0, 1, 1, 0, 1, 0), x = c(1, 3, 2, 5, 4, 1, 2, 3))
  fit <- on_host(cl_glm(y ~ x, d))
  fit$vcov <- fit$vcov.root <- list("none")
  expect_refused("object", suppressWarnings(confint(fit)))
  kernel <- k_exp_quad()
  kernel$program <- c(1L, 0L)
  expect_refused("kernel", cl_cov(1:3, kernel = kernel))
  # methods keep what they know of their call
  whole <- on_host(cl_glm(y ~ x, d))
  expect_equal(rownames(confint(whole)), c("(Intercept)", "x"))
  expect_equal(rownames(confint(whole, "x")), "x")
})

raise <- function(...) {
  stop(structure(class = c("raised", "error", "condition"), list(message = "raised", call = NULL)))
}

test_on_host("an error in an argument keeps its class: no S4 generic is the first to evaluate it", {
  calls <- fuzz_calls()
  lost <- character()
  for (name in names(calls)) for (i in seq_along(calls[[name]][[2L]])) {
    arguments <- lapply(calls[[name]][[2L]], function(value) call("quote", value))
    arguments[[i]] <- as.call(list(raise))
    error <- tryCatch(eval(as.call(c(calls[[name]][[1L]], arguments))), error = identity)
    # what a formula's frame evaluates becomes an error that names the argument
    kept <- inherits(error, "raised") || inherits(error$parent, "raised") ||
      inherits(error, "statcl_error_argument") && grepl("[.][.]5|unused", error$message)
    if (!kept) lost <- c(lost, paste(name, i, conditionMessage(error)))
  }
  expect_identical(lost, character())
})

test_that("an error of the sampler keeps its class in all fits", {
  raising <- `body<-`(cl_sample, value = call("(", call("raise")), envir = environment())
  d <- data.frame(y = c(0, 1, 0, 1, 1, 0, 1, 0), x = c(1, 3, 2, 5, 4, 1, 2, 3), g = gl(2, 4))
  on_host(with_functions(list(cl_sample = raising), for (fit in expression(
    cl_glmm(y ~ x + (1 | g), d, "bernoulli_logit", method = "mcmc"),
    cl_gp(cbind(d$x), d$x, method = "mcmc", starts = 1),
    cl_gp(cbind(d$x), d$y, family = "bernoulli_logit", method = "mcmc", starts = 1),
    cl_glm(y ~ x, d, family = "bernoulli_logit", method = "mcmc"))) {
    expect_error(eval(fit), class = "raised")
  }))
})
