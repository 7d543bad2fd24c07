# Small problems with base R input on the host engine, against base R: processor time of one call,
# the least of many, taken in turn; elementwise operations of 1e4 to 1e7 numbers, wall time. Prints
# the ratios, then the worst ten of each.
# Rscript bench/small.R [sizes, 5,50,500,1000] [seconds for each line, 0.5] [numbers, 1e4,...,1e7]
suppressMessages(library(statcl))
args <- commandArgs(TRUE)
sizes <- if (length(args) > 0) as.integer(strsplit(args[1], ",")[[1]]) else c(5L, 50L, 500L, 1000L)
seconds <- if (length(args) > 1) as.numeric(args[2]) else 0.5
numbers <- as.numeric(strsplit(if (length(args) > 2) args[3] else "1e4,1e5,1e6,1e7", ",")[[1]])
cl_use(engine = "host")

operations <- list(
  matmul = list(quote(cl_matmul(a, b)), quote(a %*% b)),
  crossprod = list(quote(cl_crossprod(a, b)), quote(crossprod(a, b))),
  crossprod1 = list(quote(cl_crossprod(a)), quote(crossprod(a))),
  tcrossprod = list(quote(cl_tcrossprod(a)), quote(tcrossprod(a))),
  chol = list(quote(cl_chol(s)), quote(chol(s))),
  tri_solve = list(quote(cl_tri_solve(l, b)), quote(forwardsolve(l, b))),
  tri_solve1 = list(quote(cl_tri_solve(l, y)), quote(forwardsolve(l, y))),
  tri_inverse = list(quote(cl_tri_inverse(l)), quote(forwardsolve(l, i))),
  map = list(quote(cl_map(f, a, b)), quote(f(a, b))),
  chol_lower = list(quote(cl_chol(s, lower = TRUE)), quote(t(chol(s)))),
  glm_lpdf = list(quote(cl_glm_lpdf(z, a, alpha = 0.1, beta = y, family = "bernoulli_logit")),
                  quote(sum(dbinom(z, 1, plogis(0.1 + a %*% y), log = TRUE)))),
  batch_inverse = list(quote(cl_batch_inverse(t4)), quote(apply(t4, 3, solve))))

setup <- function(n) {
  set.seed(n)
  a <- matrix(rnorm(n * n), n)
  s <- crossprod(a) + diag(n, n)
  list(a = a, b = matrix(rnorm(n * n), n), s = s, l = t(chol(s)), y = rnorm(n), i = diag(n),
       z = rbinom(n, 1, 0.5),
       f = function(x, y) x + y, t4 = array(c(diag(4) + 1), c(4, 4, n)))
}

# Least processor time of a call, in microseconds, of each expression.
compare <- function(pair, data, clock = function() sum(proc.time()[1:2])) {
  runs <- lapply(pair, function(code) {
    env <- list2env(data, parent = globalenv())
    compiler::cmpfun(eval(call("function", as.pairlist(alist(times = )), bquote(
      for (k in seq_len(times)) .(code))), env))
  })
  once <- function(run, times) { start <- clock(); run(times); clock() - start }
  times <- 1L
  while (once(runs[[2]], times) < 0.05 && times < 1e6) times <- times * 2L
  best <- c(Inf, Inf)
  end <- proc.time()[[3]] + seconds
  repeat {
    for (k in 1:2) best[k] <- min(best[k], once(runs[[k]], times))
    if (proc.time()[[3]] > end) break
  }
  1e6 * best / times
}

table <- NULL
for (n in sizes) {
  data <- setup(n)
  for (name in names(operations)) {
    t <- compare(operations[[name]], data)
    table <- rbind(table, data.frame(operation = name, n = n, statcl = t[1], base = t[2],
                                     ratio = t[1] / t[2], more = t[1] - t[2]))
  }
}
show <- function(rows) print(format(rows, digits = 3), row.names = FALSE)
show(table)
worst <- function(table) {
  cat("\nthe worst ten (microseconds)\n")
  show(head(table[order(-table$ratio), ], 10))
}
worst(table)

elementwise <- list(
  add = list(quote(cl_eval(a + b)), quote(x + y)),
  exp = list(quote(cl_eval(exp(a))), quote(exp(x))),
  chain = list(quote(cl_eval(exp(-a^2 / 2) * b)), quote(exp(-x^2 / 2) * y)),
  sum = list(quote(sum(a * b)), quote(sum(x * y))),
  map = list(quote(cl_map(f, x, y)), quote(f(x, y))))
table <- NULL
for (n in numbers) {
  x <- matrix(rnorm(n), ncol = 100)
  data <- list(x = x, y = x + 1, a = as_cl(x), b = as_cl(x + 1), f = function(x, y) x + y)
  for (name in names(elementwise)) {
    t <- compare(elementwise[[name]], data, function() proc.time()[[3]])
    table <- rbind(table, data.frame(operation = name, n = n, statcl = t[1], base = t[2],
                                     ratio = t[1] / t[2], more = t[1] - t[2]))
  }
}
cat("\nelementwise, wall time\n")
show(table)
worst(table)
load <- function() {
  code <- "cat(sum(system.time(suppressMessages(library(statcl)))[1:2]))"
  as.numeric(system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE))
}
cat(sprintf("\nlibrary(statcl): %.2f s\n", min(replicate(5, load()))))
