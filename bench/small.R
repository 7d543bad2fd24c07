# Small problems with base R input on the host engine, against base R: processor time of one call,
# the least of many, taken in turn. Prints the ratios, then the worst ten.
# Rscript bench/small.R [sizes, 5,50,500,1000] [seconds for each line, 0.5]
suppressMessages(library(statcl))
args <- commandArgs(TRUE)
sizes <- if (length(args) > 0) as.integer(strsplit(args[1], ",")[[1]]) else c(5L, 50L, 500L, 1000L)
seconds <- if (length(args) > 1) as.numeric(args[2]) else 0.5
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
  batch_inverse = list(quote(cl_batch_inverse(t4)), quote(apply(t4, 3, solve))))

setup <- function(n) {
  set.seed(n)
  a <- matrix(rnorm(n * n), n)
  s <- crossprod(a) + diag(n, n)
  list(a = a, b = matrix(rnorm(n * n), n), s = s, l = t(chol(s)), y = rnorm(n), i = diag(n),
       f = function(x, y) x + y, t4 = array(c(diag(4) + 1), c(4, 4, n)))
}

# Least processor time of a call, in microseconds, of each expression.
compare <- function(pair, data) {
  runs <- lapply(pair, function(code) {
    env <- list2env(data, parent = globalenv())
    compiler::cmpfun(eval(call("function", as.pairlist(alist(times = )), bquote(
      for (k in seq_len(times)) .(code))), env))
  })
  clock <- function() sum(proc.time()[1:2])
  once <- function(run, times) { start <- clock(); run(times); clock() - start }
  times <- 1L
  while (once(runs[[2]], times) < 0.02 && times < 1e6) times <- times * 2L
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
cat("\nthe worst ten (microseconds)\n")
show(head(table[order(-table$ratio), ], 10))
load <- function() {
  code <- "cat(sum(system.time(suppressMessages(library(statcl)))[1:2]))"
  as.numeric(system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE))
}
cat(sprintf("\nlibrary(statcl): %.2f s\n", min(replicate(5, load()))))
