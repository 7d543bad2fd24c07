# Real data of a million points: heights of the geoid EGM96 above the ellipsoid at every quarter of
# a degree (egm96_15.gtx of Debian's proj-data, 721 x 1,440 heights; a model of measured gravity).
# A fit by Vecchia's approximation with distances through the Earth, and predictions of 2% that are
# held out, at random and in squares of one degree, with intervals.
# Rscript bench/vecchia-geoid.R [neighbours] [share of the data] [egm96_15.gtx]

library(statcl)
cl_use(engine = "auto")

given <- commandArgs(TRUE)
neighbours <- if (length(given) > 0L) as.numeric(given[1L]) else 20
share <- if (length(given) > 1L) as.numeric(given[2L]) else 1
path <- if (length(given) > 2L) given[3L] else "/usr/share/proj/egm96_15.gtx"
if (!file.exists(path)) stop("there is no ", path, ": install Debian's proj-data, or name the file")

# A head of four doubles (the southern and western edge, the steps) and two integers (rows,
# columns), then rows of single precision from the south; all with the most significant byte first.
file <- file(path, "rb")
edge <- readBin(file, "double", 4L, endian = "big")
size <- readBin(file, "integer", 2L, endian = "big")
height <- readBin(file, "double", prod(size), size = 4L, endian = "big")
close(file)
d <- expand.grid(long = edge[2L] + edge[4L] * (seq_len(size[2L]) - 1),
                 lat = edge[1L] + edge[3L] * (seq_len(size[1L]) - 1))
d$height <- height
pole <- abs(d$lat) > 90 - 1e-9
d <- d[!pole | !duplicated(d$lat), ] # a pole is one point, not 1,440
set.seed(1)
square <- interaction(floor(d$long), floor(d$lat), drop = TRUE)
in_square <- square %in% sample(levels(square), round(0.01 * nlevels(square)))
kept <- sort(sample(nrow(d), round(share * nrow(d))))
d <- d[kept, ]
in_square <- in_square[kept]
alone <- !in_square & stats::runif(nrow(d)) < 0.01

clock <- function(what, code) {
  cat(sprintf("%s: %.1f s\n", what, system.time(code)[["elapsed"]]))
}
train <- d[!in_square & !alone, ]
cat(sprintf("%d of %d heights fitted with %g neighbours, standard deviation %.2f m\n", nrow(train),
            nrow(d), neighbours, stats::sd(d$height)))
clock("fit", fit <- cl_gp(height ~ long + lat, train, k_matern52(distance = "chordal"),
                          approx = "vecchia", neighbours = neighbours, starts = 1))
print(fit)
held_out <- list("held out at random" = alone, "held out in squares" = in_square)
for (which in names(held_out)) {
  test <- d[held_out[[which]], ]
  clock(which, at <- predict(fit, test, interval = "prediction"))
  cat(sprintf("  %d heights: root mean square %.3f m, 95%% intervals have %.1f%%, width %.3f m\n",
              nrow(test), sqrt(mean((test$height - at[, "fit"])^2)),
              100 * mean(test$height > at[, "lwr"] & test$height < at[, "upr"]),
              mean(at[, "upr"] - at[, "lwr"])))
}
