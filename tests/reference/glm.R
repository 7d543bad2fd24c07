# Writes glm-terms.csv and glm-sums.csv: the Bernoulli-logit density in 200-bit arithmetic, by the
# textbook formulas, to 40 digits. Needs the package Rmpfr. Run in this folder:
#
#   Rscript glm.R

library(Rmpfr)

bits <- 200
digits <- function(x) format(x, digits = 40, scientific = TRUE)
number <- function(x) mpfr(x, bits)

# log p(y) and its derivative by eta. At 200 bits exp(-800) is lost beside 1, so 1 + exp(-800) needs
# more.
log_density <- function(y, eta) {
  e <- mpfr(eta, 4000)
  p <- 1 / (1 + exp(-e))
  roundMpfr(if (y == 1) log(p) else log(1 - p), bits)
}
slope <- function(y, eta) {
  e <- mpfr(eta, 4000)
  roundMpfr(y - 1 / (1 + exp(-e)), bits)
}

# ---- single terms ----------------------------------------------------------------------------
eta <- c(0, 2^-40, 0.5, 1, 5, 20, 36, 37, 40, 88, 300, 700, 745, 800)
terms <- expand.grid(y = 0:1, eta = sort(unique(c(-eta, eta))))
terms$value <- mapply(function(y, e) digits(log_density(y, e)), terms$y, terms$eta)
terms$slope <- mapply(function(y, e) digits(slope(y, e)), terms$y, terms$eta)
terms$eta <- sprintf("%.17g", terms$eta)
write.csv(terms, "glm-terms.csv", row.names = FALSE, quote = FALSE)

# ---- sums: predictors of all sizes mixed -----------------------------------------------------
# Entries are small multiples of powers of two, so that they are exact and easily made again.
problem <- function(n, k, spread) {
  i <- seq_len(n)
  x <- outer(i, seq_len(k), function(i, j) ((i * (2 * j + 1) + 5 * j) %% 17 - 8) / 8)
  beta <- spread * ((seq_len(k) * 7) %% 5 - 2) / 4
  list(x = x, y = as.numeric((i * i) %% 3 == 1), alpha = 0.375, alphas = ((i * 5) %% 9 - 4) / 16,
       beta = beta)
}

solve_problem <- function(q, alpha) {
  eta <- mpfr(rep(0, nrow(q$x)), bits)
  for (j in seq_along(q$beta)) eta <- eta + number(q$x[, j]) * number(q$beta[j])
  eta <- eta + number(alpha)
  values <- slopes <- mpfr(rep(0, nrow(q$x)), bits)
  for (i in seq_along(q$y)) {
    values[i] <- log_density(q$y[i], eta[i])
    slopes[i] <- slope(q$y[i], eta[i])
  }
  d_beta <- lapply(seq_along(q$beta), function(j) digits(sum(slopes * number(q$x[, j]))))
  list(value = digits(sum(values)), d_alpha = digits(sum(slopes)), d_beta = unlist(d_beta),
       slopes = vapply(seq_along(q$y), function(i) digits(slopes[i]), ""))
}

rows <- list()
add <- function(...) rows[[length(rows) + 1L]] <<- data.frame(..., stringsAsFactors = FALSE)
for (spread in c(1, 30, 400)) {
  q <- problem(23, 4, spread)
  for (rowwise in c(FALSE, TRUE)) {
    r <- solve_problem(q, if (rowwise) q$alphas else q$alpha)
    add(spread = spread, rowwise = rowwise, what = "value", index = 1, number = r$value)
    add(spread = spread, rowwise = rowwise, what = "beta", index = seq_along(r$d_beta),
        number = r$d_beta)
    d_alpha <- if (rowwise) r$slopes else r$d_alpha
    add(spread = spread, rowwise = rowwise, what = "alpha", index = seq_along(d_alpha),
        number = d_alpha)
  }
}
write.csv(do.call(rbind, rows), "glm-sums.csv", row.names = FALSE, quote = FALSE)
