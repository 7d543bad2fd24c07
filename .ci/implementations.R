# The devices of one OpenCL implementation, in a session of their own: "one" device or more, which
# compute, or are refused if they have no double precision; "two" devices in one process; a platform
# with "none". The last line says what was seen.
suppressMessages(library(statcl))
options(statcl.quiet = TRUE)
expected <- commandArgs(TRUE)

class_of <- function(code) tryCatch({ code; "" }, error = function(e) e)
is_fault <- function(e, kind, ...) {
  words <- vapply(c(...), grepl, NA, conditionMessage(e), fixed = TRUE)
  inherits(e, paste0("statcl_error_", kind)) && all(words)
}
near <- function(a, b) isTRUE(all.equal(as.matrix(a), as.matrix(b), tolerance = 1e-12))

x <- matrix(sin(1:30), 6)
s <- crossprod(x) + diag(5)
y <- rep(0:1, 3)

# Arithmetic, a product, a factor, a solution, a sum, a likelihood, all against base R.
computes <- function() {
  a <- as_cl(x)
  value <- cl_glm_lpdf(y, x, alpha = 0.1, beta = rep(0.2, 5), family = "bernoulli_logit")
  eta <- drop(0.1 + x %*% rep(0.2, 5))
  stopifnot(near(exp(a / 2) + 1, exp(x / 2) + 1), near(a %*% t(a), x %*% t(x)),
            near(chol(as_cl(s)), chol(s)), near(cl_tri_solve(as_cl(t(chol(s))), 1:5),
                                                forwardsolve(t(chol(s)), 1:5)),
            near(sum(a), sum(x)), near(c(value), sum(dbinom(y, 1, plogis(eta), log = TRUE))))
}

devices <- cl_devices()
shown <- capture.output(cl_sitrep())
if (expected == "none") {
  stopifnot(nrow(devices) == 0L, !cl_available(), any(grepl("no device|no platform", shown)))
} else {
  stopifnot(nrow(devices) >= if (expected == "two") 2L else 1L, anyDuplicated(devices$id) == 0L,
            all(vapply(devices$id, function(id) any(grepl(id, shown, fixed = TRUE)), NA)))
}
for (k in which(!devices$fp64)) {
  id <- devices$id[k]
  stopifnot(is_fault(class_of(cl_use(id)), "no_fp64", id, devices$name[k]),
            is_fault(class_of(with_cl(as_cl(x), device = id)), "no_fp64", id))
}
if (!any(devices$fp64)) {
  stopifnot(is_fault(class_of(cl_use(engine = "device")), "no_device"))
  cl_use(engine = "auto")
}
able <- devices$id[devices$fp64]
for (id in able) {
  cl_use(id, engine = "device")
  stopifnot(cl_devices()$id[cl_devices()$default] == id)
  computes()
}
if (length(able) >= 2L) {
  kept <- lapply(able[1:2], function(id) with_cl(as_cl(x), device = id, engine = "device"))
  both <- able[1:2]
  stopifnot(
    is_fault(class_of(kept[[1L]] + kept[[2L]]), "argument", "'e2'", both),
    is_fault(class_of(cl_crossprod(kept[[1L]], kept[[2L]])), "argument", "'y'", both),
    is_fault(class_of(pmax(kept[[1L]], kept[[2L]])), "argument", both),
    is_fault(class_of(kept[[2L]] + with_cl(as_cl(x), engine = "host")), "argument", "the host",
             both[2L]),
    near(kept[[1L]] * 2, x * 2), near(kept[[2L]] * 2, x * 2))
  model <- cl_likelihood("bernoulli_logit", y, x[, 1:2])
  fit <- cl_sample(cl_log_posterior(model, ~ -(alpha^2 + sum(beta^2)) / 2), chains = 3, seed = 1,
                   list(alpha = 0, beta = c(0, 0)), warmup = 100, iter = 100, devices = both)
  stopifnot(dim(fit$draws)[2L] == 3L, is.finite(fit$draws), abs(colMeans(as.matrix(fit))) < 1)
  cl_use(match(both[1L], devices$id), engine = "device") # by its number in the table
  stopifnot(cl_devices()$id[cl_devices()$default] == both[1L])
}
cl_use(engine = "host")
computes()
cat(if (!nrow(devices)) "no device, which is said, and the host computes" else paste0(
  devices$name, " (", devices$id, ") ", ifelse(devices$fp64, "computes", "is refused: no FP64"),
  collapse = "; "), "\n", sep = "")
