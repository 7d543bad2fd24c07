# Does cl_gp() find the best of many optima? Fits 28 data sets with three kernels each and 31 series
# with a periodic kernel, all from R's own data, with default settings, and compares with the best
# of 40 starting points. Rscript bench/gp-optima.R [fraction of the fits] [file for references]
# [effort].
#
# Prints each fit that is more than 0.1 below, then the counts. With `effort` then the counts with
# each number of the search's schedule (search_effort in R/gp-starts.R) halved, and doubled.

library(statcl)
cl_use(engine = "host")

given <- commandArgs(TRUE)
share <- if (length(given) > 0L) as.numeric(given[1L]) else 1
file <- if (length(given) > 1L) given[2L] else tempfile(fileext = ".rds")

time_of <- function(v) data.frame(t = as.vector(time(v)), y = as.vector(v))
some <- function(d, count) {
  d <- stats::na.omit(d)
  d[round(seq(1, nrow(d), length.out = min(count, nrow(d)))), ]
}

data_sets <- list(
  cars = list(dist ~ speed, cars), faithful = list(waiting ~ eruptions, some(faithful, 150)),
  mtcars = list(mpg ~ wt + hp, mtcars), mtcars4 = list(mpg ~ wt + hp + disp + qsec, mtcars),
  airquality = list(log(Ozone) ~ Temp + Wind + Solar.R, airquality),
  trees = list(Volume ~ Girth + Height, trees),
  stackloss = list(stack.loss ~ Air.Flow + Water.Temp + Acid.Conc., stackloss),
  swiss = list(Fertility ~ Agriculture + Examination + Catholic, swiss),
  longley = list(Employed ~ GNP + Population, longley),
  attitude = list(rating ~ complaints + learning + raises, attitude),
  women = list(weight ~ height, women), pressure = list(log(pressure) ~ temperature, pressure),
  quakes = list(depth ~ long + lat, some(quakes, 150)),
  iris = list(Petal.Length ~ Sepal.Length + Sepal.Width, iris),
  savings = list(sr ~ pop15 + pop75 + dpi, LifeCycleSavings),
  rock = list(log(perm) ~ area + peri + shape, rock),
  chick = list(weight ~ Time, some(ChickWeight, 150)),
  orange = list(circumference ~ age, Orange), loblolly = list(height ~ age, Loblolly),
  puromycin = list(rate ~ conc, Puromycin),
  sunspot = list(sqrt(y) ~ t, time_of(sunspot.year)),
  nile = list(y ~ t, time_of(Nile)), huron = list(y ~ t, time_of(LakeHuron)),
  lynx = list(log(y) ~ t, time_of(lynx)),
  beaver = list(temp ~ seq_along(temp), beaver1),
  mcycle = list(accel ~ times, MASS::mcycle), urine = list(GAG ~ Age, some(MASS::GAGurine, 150)),
  cats = list(Hwt ~ Bwt, MASS::cats))

series <- list(
  air = log(AirPassengers), sales = BJsales, lead = BJsales.lead,
  dax = log(EuStockMarkets[seq(1, 1860, by = 12), 1]), johnson = log(JohnsonJohnson),
  huron = LakeHuron, nile = Nile, drivers = log(UKDriverDeaths), gas = log(UKgas),
  accidents = USAccDeaths, www = WWWusage, miles = log(airmiles), austres = austres,
  co2 = window(co2, end = c(1972, 12)), discoveries = sqrt(discoveries), lungs = log(ldeaths),
  men = log(mdeaths), women = log(fdeaths), hormone = lh, lynx = log(lynx), temperature = nhtemp,
  nottingham = window(nottem, end = c(1934, 12)), presidents = presidents,
  sunspot = sqrt(sunspot.year), months = sqrt(window(sunspots, 1960)),
  tree = window(treering, start = 1780), population = log(uspop),
  front = log(Seatbelts[, "front"]), distance = Seatbelts[, "kms"],
  beaver = ts(beaver2$temp), deaths = log(MASS::deaths))

season <- quote(k_periodic() * k_exp_quad() + k_matern32())
fits <- c(
  unlist(lapply(names(data_sets), function(name) {
    lapply(c("k_exp_quad", "k_matern52", "k_matern32"), function(kernel) {
      list(name = paste(name, kernel), formula = data_sets[[name]][[1L]],
           data = data_sets[[name]][[2L]], kernel = call(kernel))
    })
  }), recursive = FALSE),
  lapply(names(series), function(name) {
    # counted by index, the step of which is the period that a periodic kernel has by default
    v <- series[[name]]
    list(name = paste("series", name), formula = y ~ t, kernel = season,
         data = stats::na.omit(data.frame(t = seq_along(v), y = as.vector(v))))
  }))
fits <- fits[unique(round(seq(1, length(fits), length.out = ceiling(share * length(fits)))))]

one <- function(task, ...) {
  used <- system.time(fit <- suppressWarnings(
    cl_gp(task$formula, task$data, kernel = eval(task$kernel), method = "ml", ...)))
  c(value = fit$logLik, seconds = sum(used[1:2]), evaluations = fit$evaluations)
}

known <- if (file.exists(file)) readRDS(file) else numeric()
run_all <- function(label) {
  rows <- do.call(rbind, lapply(fits, function(task) {
    default <- one(task)
    if (is.na(known[task$name])) known[task$name] <<- one(task, starts = 40)[["value"]]
    best <- max(known[[task$name]], default[["value"]])
    known[task$name] <<- best
    saveRDS(known, file)
    lost <- best - default[["value"]]
    if (lost > 0.1 && label == "") {
      cat(sprintf("%-28s %10.2f, best known %10.2f\n", task$name, default[["value"]], best))
    }
    c(default, lost = lost)
  }))
  lost <- rows[, "lost"]
  cat(sprintf("%s%d fits: %d more than 0.1 below, %d more than 1, %d more than 10\n", label,
              nrow(rows), sum(lost > 0.1), sum(lost > 1), sum(lost > 10)))
  message(sprintf("%.1f s, %.0f evaluations", sum(rows[, "seconds"]), sum(rows[, "evaluations"])))
}

run_all("")
if ("effort" %in% given) {
  effort <- getFromNamespace("search_effort", "statcl")
  for (kind in names(effort)) for (name in names(effort[[kind]])) for (by in c(0.5, 2)) {
    if (startsWith(name, "inputs")) next
    changed <- effort
    value <- by * effort[[kind]][[name]]
    changed[[kind]][[name]] <- if (is.integer(effort[[kind]][[name]])) as.integer(value) else value
    assignInNamespace("search_effort", changed, "statcl")
    run_all(sprintf("%s %s = %g: ", kind, name, changed[[kind]][[name]]))
  }
}
