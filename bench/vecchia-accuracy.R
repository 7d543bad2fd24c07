# How close is Vecchia's approximation? For 20 settings of 4,000 points: the log likelihood of a
# draw of the exact process less the exact one, and the Kullback-Leibler divergence of the
# approximation from the process, with 10, 30 and 60 neighbours, and after it that with grouped
# observations. The last lines have processor seconds of a value and of a gradient, on the average.
# Rscript bench/vecchia-accuracy.R [points]
#
# Each conditional distribution of the approximation is one of the process, so that the divergence
# is the difference of the logarithms of the densities at 0.

library(statcl)
cl_use(engine = "host")

given <- commandArgs(TRUE)
n <- if (length(given) > 0L) as.integer(given[1L]) else 4000L
neighbours <- c(10L, 30L, 60L)
settings <- rbind(
  expand.grid(kernel = c("k_exponential", "k_matern32", "k_matern52", "k_exp_quad"), p = 2,
              lengthscale = c(0.05, 0.3), noise = c(0.05, 0.5), stringsAsFactors = FALSE),
  data.frame(kernel = c("k_matern32", "k_matern52"), p = c(1, 3, 5, 1),
             lengthscale = c(0.1, 0.3, 1, 0.02), noise = 0.1))

seconds <- function(code) sum(system.time(code)[1:2])
taken <- list()

one <- function(setting) {
  set.seed(setting$p)
  x <- matrix(runif(n * setting$p), n)
  kernel <- getExportedValue("statcl", setting$kernel)(lengthscale = setting$lengthscale)
  root <- chol(cl_cov(x, kernel = kernel) + diag(setting$noise^2, n))
  z <- rnorm(n)
  zero <- -sum(log(diag(root))) - n / 2 * log(2 * pi) # the exact log density at 0
  par <- c(coef(kernel), noise = setting$noise)
  found <- vapply(neighbours, function(m) {
    of <- function(y, grouped = FALSE) {
      f <- cl_gp_likelihood(y, x, kernel, approx = "vecchia", neighbours = m, grouped = grouped)
      used <- c(seconds(f(par, gradient = FALSE)), seconds(f(par)))
      at <- paste(m, if (grouped) "grouped" else "apart")
      taken[[at]] <<- rbind(taken[[at]], used)
      as.numeric(f(par, gradient = FALSE))
    }
    c(of(drop(crossprod(root, z))) - (zero - sum(z^2) / 2), zero - of(numeric(n)),
      zero - of(numeric(n), TRUE))
  }, numeric(3L))
  cat(sprintf("| %s | %d | %g | %g | %.1f | %s |\n", setting$kernel, as.integer(setting$p),
              setting$lengthscale, setting$noise, zero - sum(z^2) / 2,
              paste(sprintf("%.3g (%.3g; %.3g)", found[1L, ], found[2L, ], found[3L, ]),
                    collapse = " | ")))
}

cat("| kernel | columns | lengthscale | noise | exact |",
    paste(sprintf("m = %d: difference (KL; grouped)", neighbours), collapse = " | "), "|\n")
cat("|---|---:|---:|---:|---:|---:|---:|---:|\n")
for (i in seq_len(nrow(settings))) one(settings[i, ])
for (at in names(taken)) {
  cat(sprintf("%s neighbours: value %.4f s, gradient %.4f s\n", at, mean(taken[[at]][, 1L]),
              mean(taken[[at]][, 2L])))
}
