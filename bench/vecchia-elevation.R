# Real data: 69,938 elevations of the Rocky Mountains (RMelevation of the package fields, Debian's
# r-cran-fields). A fit by Vecchia's approximation of nine tenths of them, chosen at random,
# predictions of the rest with intervals, and draws of the surface there.
# Rscript bench/vecchia-elevation.R [share of the data]

library(statcl)
cl_use(engine = "auto")

given <- commandArgs(TRUE)
share <- if (length(given) > 0L) as.numeric(given[1L]) else 1
found <- new.env()
utils::data("RMelevation", package = "fields", envir = found)
grid <- found$RMelevation
set.seed(1)
d <- expand.grid(longitude = grid$x, latitude = grid$y)
d$elevation <- as.vector(grid$z)
d <- d[sample(nrow(d), round(share * nrow(d))), ]
test <- seq_len(nrow(d)) %% 10L == 0L

clock <- function(what, code) {
  cat(sprintf("%s: %.1f s\n", what, system.time(code)[["elapsed"]]))
}
clock("fit", fit <- cl_gp(elevation ~ longitude + latitude, d[!test, ], k_matern32(),
                          approx = "vecchia", starts = 1))
print(fit)
clock("predictions", at <- predict(fit, d[test, ], interval = "prediction"))
clock("10 draws", draws <- as.matrix(simulate(fit, 10, seed = 1, d[test, ], noise = TRUE)))
y <- d$elevation[test]
apart <- mean(abs(apply(draws, 1L, mean) - at[, "fit"])) / stats::sd(y)
cat(sprintf(paste("%d fitted, %d predicted: root mean square %.1f m of %.1f m; 95%% intervals have",
                  "%.1f%%; mean of draws less prediction %.3f standard deviations of y\n"),
            sum(!test), sum(test), sqrt(mean((y - at[, "fit"])^2)), stats::sd(y),
            100 * mean(y > at[, "lwr"] & y < at[, "upr"]), apart))
