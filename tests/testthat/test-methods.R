# What all registered methods have in common: an argument is honoured or refused, never ignored.

registered <- function() {
  table <- getNamespaceInfo("statcl", "S3methods")
  found <- data.frame(generic = table[, 1L], class = table[, 2L], name = table[, 3L],
                      stringsAsFactors = FALSE)
  found <- found[!duplicated(paste(found$generic, found$class)), ]
  found$f <- lapply(found$name, get, envir = asNamespace("statcl"))
  found
}

test_that("a method uses what it takes", {
  methods <- registered()
  # R hands a print() of a list on to its elements, and emmeans and insight give the arguments of
  # all models; [[ has no arguments that R would take by name.
  free <- grepl("^(print|format|str|\\[.*|get_.*|find_formula)$", methods$generic) |
    methods$name == "as.data.frame.cl_traced"
  dots <- vapply(methods$f, function(f) {
    used <- all.names(body(f))
    !"..." %in% names(formals(f)) || any(c("...", "NextMethod", "UseMethod") %in% used)
  }, NA)
  expect_identical(methods$name[!dots & !free], character())
  # Arguments that are not mentioned: those that the next method or the model frame takes, those of
  # methods that refuse all, and what R allows to ignore.
  taken <- c("optional", "deparse.level", "exact", "recursive", "weights", "offset", "subset",
             "variance", "etastart", "mustart")
  lost <- unlist(Map(function(f, name) {
    used <- c(all.names(body(f)), unlist(lapply(formals(f), all.names)))
    left <- setdiff(names(formals(f))[-1L], c("...", used, taken))
    if (!"NextMethod" %in% used && length(left) > 0L) paste(name, left)
  }, methods$f, methods$name), use.names = FALSE)
  expect_identical(sort(lost), c("simulate.cl_glm_stream nsim", "simulate.cl_glm_stream seed"))
})

test_that("an argument that nobody knows is refused by name", {
  set.seed(1)
  d <- data.frame(y = rpois(40, 3), x = rnorm(40), g = factor(rep(1:8, 5)), b = rep(0:1, 20),
                  z = rnorm(40))
  control <- list(chains = 2, warmup = 60, iter = 60, seed = 1)
  on_host(suppressWarnings(suppressMessages({
    fit <- cl_glm(y ~ x, d, "poisson_log")
    objects <- list(
      fit, cl_glm(b ~ x, data = d, method = "mcmc", control = control),
      cl_glm(factor(y > 2) ~ x, d, "categorical_logit"),
      cl_glm(y ~ x, d, cl_family("zero_inflated_poisson")),
      cl_glmm(y ~ x + (1 | g), d, "poisson_log"), cl_gp(z ~ x, d[1:10, ]),
      cl_batch_lm(z ~ x, d, group = d$g), cl_matrix(diag(2)), k_exp_quad(),
      cl_sample(function(x) structure(-x^2 / 2, gradient = -x), c(a = 0), chains = 2,
                warmup = 60, iter = 60),
      cl_tmb(function(p) sum((p$a - 1:2)^2), list(a = c(0, 0))),
      cl_optimise(cl_gradient(function(a) -sum((a - 1:2)^2)), c(0, 0)))
    methods <- registered()
    methods <- methods[vapply(methods$f, function(f) {
      "..." %in% names(formals(f)) && !"NextMethod" %in% all.names(body(f))
    }, NA), ]
    # The rest is passed on to a function that takes it or refuses it.
    passed <- "^(print|format|str|plot|c|cbind|rbind|rep|anova|AIC|BIC|get_.*|find_formula)$"
    base <- c("cut", "median", "quantile", "unique", "duplicated", "anyDuplicated", "rowsum",
              "all.equal", "as.data.frame", "sort", "Math")
    checked <- 0
    for (object in objects) {
      class <- if (isS4(object)) "clMatrix" else class(object)
      use <- methods$class %in% class & !grepl(passed, methods$generic) &
        !grepl("^(\\[|on_|emm_basis|recover_data|loo\\.|model_performance|r2|check_)",
               methods$name) &
        !grepl("xtable|coeftest|update|standardize|profile|Anova", methods$name) &
        !(isS4(object) & methods$generic %in% base)
      for (k in which(use)) {
        problem <- tryCatch(methods$f[[k]](object, not_known = 1), error = identity)
        text <- if (inherits(problem, "error")) conditionMessage(problem) else ""
        expect(inherits(problem, "statcl_error_argument") &&
                 identical(problem$argument, "not_known") || grepl("only a fit with method", text),
               sprintf("%s() gives %s %s", methods$name[k], class(problem)[1L], text))
        checked <- checked + 1
      }
    }
  })))
  expect_gt(checked, 180)
  # what a caller of other methods passes
  on_host(expect_identical(nobs(fit, use.fallback = TRUE), 40L))
})

test_on_host("what methods of as.data.frame(), coef() and VarCorr() take has an effect", {
  fit <- cl_batch_lm(mpg ~ wt, mtcars, group = cyl)
  expect_identical(rownames(as.data.frame(fit, letters[1:6])), letters[1:6])
  expect_refused("row.names", as.data.frame(fit, letters))
  lost <- cl_glm(mpg ~ wt + I(2 * wt), mtcars, "normal_id")
  peer <- lm(mpg ~ wt + I(2 * wt), mtcars)
  for (complete in c(TRUE, FALSE)) {
    expect_equal(coef(lost, complete = complete), coef(peer, complete = complete))
  }
  skip_if_not_installed("nlme")
  mixed <- cl_glmm(mpg ~ wt + (1 | cyl), mtcars, "normal_id")
  expect_refused("sigma", nlme::VarCorr(mixed, 2))
})
