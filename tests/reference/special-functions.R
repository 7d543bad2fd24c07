# Values of the special functions to the last bit of a double, by Rmpfr with 300 bits: makes
# special-functions.csv, which test-arith.R reads. `near_zero`: whether a zero that is no number of
# this kind is near, so that relative errors mean little.
suppressMessages(library(Rmpfr))
bits <- 300
number <- function(x) mpfr(x, bits)
pi_ <- Const("pi", bits)

# The derivatives of log(gamma): from far right, by the asymptotic series.
polygamma <- function(order, x) {
  left <- x < 0
  y <- number(x)
  y[left] <- 1 - y[left]
  sum <- 0 * y
  while (any(low <- y < 70)) {
    term <- if (order == 0) -1 / y else 1 / y^2
    sum[low] <- sum[low] + term[low]
    y[low] <- y[low] + 1
  }
  bernoulli <- Bernoulli(2 * (1:25), bits)
  for (i in 1:25) {
    w <- y^(2 * i)
    sum <- sum + if (order == 0) -bernoulli[i] / (2 * i * w) else bernoulli[i] / (y * w)
  }
  sum <- sum + if (order == 0) log(y) - 1 / (2 * y) else 1 / y + 1 / (2 * y^2)
  angle <- pi_ * number(x)
  reflected <- if (order == 0) sum - pi_ * cos(angle) / sin(angle) else pi_^2 / sin(angle)^2 - sum
  sum[left] <- reflected[left]
  sum
}

right <- c(1e-300, 1e-10, 0.01, 0.3, 0.49999, 0.5, 0.75, 1, 1 + 2^-30, 1.25, 1.4999, 1.5, 1.9, 2,
           2 + 2^-40, 2.3, 2.5, 3, 3.7, 7.25, 11.9, 12, 12.6, 19.99, 20, 23, 50.3, 100.1, 170.9)
left <- c(-1e-10, -0.1, -0.49, -0.5, -0.75, -1.2, -2.6, -4.99, -7.5, -19.6, -20.4, -45.1, -100.7)
any_size <- c(right, left, 1e3, 12345.678, 1e10, 1e100)
quarters <- c(0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 1 + 2^-40, 1.2, 1.9, 2.4, 1e5 + 0.3, -0.2, -0.8,
              -1.5, -3.3)
normal <- c(seq(-37.4, 8, length.out = 60), -1e-8, 1e-8)
near <- function(value, x) abs(asNumeric(value)) < 0.6 & x < 2.5 & abs(x) > 0.4

rows <- list(
  list("gamma", c(right, left), gamma(number(c(right, left)))),
  list("lgamma", any_size, lgamma(number(any_size))),
  list("digamma", any_size, polygamma(0, any_size)),
  list("trigamma", any_size, polygamma(1, any_size)),
  list("sinpi", quarters, sin(pi_ * number(quarters))),
  list("cospi", quarters, cos(pi_ * number(quarters))),
  list("tanpi", quarters[quarters %% 1 != 0.5], tan(pi_ * number(quarters[quarters %% 1 != 0.5]))),
  list("erf", normal, erf(number(normal))),
  list("erfc", normal[normal < 26], erfc(number(normal[normal < 26]))),
  list("pnorm", normal, pnorm(number(normal))),
  list("log_pnorm", c(normal, -50), pnorm(number(c(normal, -50)), log.p = TRUE)))
table <- do.call(rbind, lapply(rows, function(row) {
  value <- asNumeric(row[[3]])
  zero <- row[[1]] == "digamma" & near(row[[3]], row[[2]]) |
    row[[1]] == "lgamma" & row[[2]] < 0 & abs(value) < 0.6
  if (grepl("pi$", row[[1]])) value[abs(value) < 1e-50] <- 0
  data.frame(name = row[[1]], x = sprintf("%.17g", row[[2]]), value = sprintf("%.17g", value),
             near_zero = zero)
}))
write.csv(table, "special-functions.csv", row.names = FALSE, quote = FALSE)
