# How good are predictions from few noisy observations of several inputs? 42 data sets of R and its
# recommended packages, at most 80 rows of each, by 10-fold cross-validation: coverage of 95%
# prediction intervals, the mean log density of standardised observations, and the root mean squared
# error divided by the standard deviation, by method of cl_gp().
#
#   STATCL_BENCH_JOBS=16 Rscript bench/gp-robust.R [sets: 1-42, names or all] [folds] [methods]
#
# Methods: "default", and those of cl_gp() by maximisation.

library(statcl)
cl_use(engine = "host")

given <- commandArgs(TRUE)
folds <- if (length(given) > 1L) as.integer(given[2L]) else 10L
methods <- if (length(given) > 2L) given[-(1:2)] else c("ml", "map", "loo", "default")
jobs <- as.integer(Sys.getenv("STATCL_BENCH_JOBS", "1"))

of <- function(package, name) get(data(list = name, package = package, envir = environment()))
state <- function() {
  names <- make.names(colnames(state.x77))
  setNames(as.data.frame(state.x77), names)
}
freeny_data <- function() data.frame(y = as.vector(freeny.y), unclass(freeny.x), check.names = TRUE)

sets <- list(
  attitude = list(rating ~ ., attitude), mtcars = list(mpg ~ wt + hp + disp + qsec + drat, mtcars),
  swiss = list(Fertility ~ ., swiss), longley = list(Employed ~ ., longley),
  stackloss = list(stack.loss ~ ., stackloss), savings = list(sr ~ ., LifeCycleSavings),
  trees = list(Volume ~ ., trees), rock = list(log(perm) ~ area + peri + shape, rock),
  airquality = list(log(Ozone) ~ Temp + Wind + Solar.R + Month, airquality),
  iris = list(Petal.Length ~ Sepal.Length + Sepal.Width + Petal.Width, iris),
  state = list(Life.Exp ~ Population + Income + Illiteracy + Murder + HS.Grad + Frost + log(Area),
               state()),
  judges = list(RTEN ~ CONT + INTG + DMNR + PREP + ORAL, USJudgeRatings),
  arrests = list(Murder ~ Assault + UrbanPop + Rape, USArrests),
  freeny = list(y ~ lag.quarterly.revenue + price.index + income.level + market.potential,
                freeny_data()),
  quakes = list(mag ~ long + lat + depth + stations, quakes), cars = list(dist ~ speed, cars),
  faithful = list(waiting ~ eruptions, faithful), loblolly = list(height ~ age, Loblolly),
  puromycin = list(rate ~ conc + I(as.numeric(state)), Puromycin),
  boston = list(log(medv) ~ crim + nox + rm + age + dis + tax + ptratio + lstat, MASS::Boston),
  cpus = list(log(perf) ~ log(syct) + log(mmin) + log(mmax) + cach + chmin + chmax, MASS::cpus),
  cement = list(y ~ ., MASS::cement),
  crime = list(y ~ M + Ed + Po1 + LF + M.F + U2 + GDP + Ineq + Prob, MASS::UScrime),
  road = list(log(deaths) ~ log(drivers) + popden + rural + temp + log(fuel), MASS::road),
  hills = list(log(time) ~ log(dist) + climb, MASS::hills), rubber = list(loss ~ ., MASS::Rubber),
  cars93 = list(MPG.city ~ Weight + Horsepower + Length + EngineSize + RPM + Price, MASS::Cars93),
  crabs = list(CW ~ FL + RW + CL + BD, MASS::crabs),
  glass = list(RI ~ Na + Mg + Al + Si + K + Ca, MASS::fgl),
  topo = list(z ~ x + y, MASS::topo), birth = list(bwt ~ age + lwt + smoke + ht, MASS::birthwt),
  pima = list(glu ~ npreg + bp + skin + bmi + ped + age, MASS::Pima.tr),
  melanoma = list(log(time) ~ age + year + thickness, MASS::Melanoma),
  nuclear = list(log(cost) ~ date + t1 + t2 + log(cap) + cum.n, of("boot", "nuclear")),
  salinity = list(sal ~ lag + trend + dis, of("boot", "salinity")),
  urine = list(calc ~ gravity + ph + osmo + cond + urea, of("boot", "urine")),
  environmental = list(ozone^(1 / 3) ~ radiation + temperature + wind,
                       of("lattice", "environmental")),
  ethanol = list(NOx ~ C + E, of("lattice", "ethanol")),
  mileage = list(Mileage ~ Weight + Disp. + HP + Price, of("rpart", "car.test.frame")),
  mammals = list(log(brain) ~ log(body), MASS::mammals),
  geyser = list(waiting ~ duration, MASS::geyser), motor = list(accel ~ times, MASS::mcycle))
if (length(given) > 0L && given[1L] != "all") {
  sets <- if (grepl("^[0-9,-]+$", given[1L])) {
    at <- lapply(strsplit(strsplit(given[1L], ",")[[1L]], "-"), as.integer)
    sets[unlist(lapply(at, function(v) seq(v[1L], v[length(v)])))]
  } else {
    sets[names(sets) %in% strsplit(given[1L], ",")[[1L]]]
  }
}

# Inputs and response as numbers, at most 80 rows.
numbers <- function(set) {
  frame <- model.frame(set[[1L]], set[[2L]], na.action = na.omit)
  x <- model.matrix(terms(frame), frame)[, -1L, drop = FALSE]
  kept <- round(seq(1, nrow(x), length.out = min(80L, nrow(x))))
  list(x = unname(x[kept, , drop = FALSE]), y = as.vector(model.response(frame))[kept])
}

fit_by <- function(method, x, y) {
  suppressWarnings(switch(method, default = cl_gp(x, y), cl_gp(x, y, method = method)))
}

one <- function(set, method) {
  d <- numbers(set)
  n <- length(d$y)
  set.seed(1)
  fold <- sample(rep_len(seq_len(folds), n))
  spread <- sd(d$y)
  used <- system.time(rows <- lapply(seq_len(folds), function(k) {
    out <- fold == k
    fit <- fit_by(method, d$x[!out, , drop = FALSE], d$y[!out])
    p <- predict(fit, d$x[out, , drop = FALSE], interval = "prediction")
    se <- (p[, "upr"] - p[, "lwr"]) / (2 * qnorm(0.975))
    z <- (d$y[out] - p[, "fit"]) / se
    cbind(hit = abs(z) < qnorm(0.975), score = dnorm(z, log = TRUE) - log(se / spread),
          error = ((d$y[out] - p[, "fit"]) / spread)^2)
  }))
  rows <- do.call(rbind, rows)
  c(n = n, p = ncol(d$x), coverage = mean(rows[, "hit"]), score = mean(rows[, "score"]),
    rmse = sqrt(mean(rows[, "error"])), seconds = used[["elapsed"]])
}

if (!exists("only_define")) {
  tasks <- expand.grid(set = seq_along(sets), method = methods, stringsAsFactors = FALSE)
  rows <- parallel::mclapply(seq_len(nrow(tasks)), function(i) {
    one(sets[[tasks$set[i]]], tasks$method[i])
  }, mc.cores = jobs, mc.preschedule = FALSE)
  failed <- vapply(rows, inherits, NA, what = "try-error")
  if (any(failed)) stop(names(sets)[tasks$set[which(failed)[1L]]], ": ", rows[[which(failed)[1L]]])
  rows <- do.call(rbind, rows)
  part <- function(what) {
    matrix(rows[, what], length(sets), dimnames = list(names(sets), methods))
  }
  shown <- cbind(rows[seq_along(sets), c("n", "p"), drop = FALSE], round(part("coverage"), 2),
                 round(part("score"), 3), round(part("rmse"), 3))
  rownames(shown) <- names(sets)
  cat("coverage, log score and error by method:\n")
  print(shown)
  for (method in methods) {
    r <- rows[tasks$method == method, , drop = FALSE]
    cat(sprintf(paste("%-8s coverage %.3f (least %.2f)  log score %.3f (least %.2f)  error %.3f",
                      "%.1f s\n"), method, mean(r[, "coverage"]), min(r[, "coverage"]),
                mean(r[, "score"]), min(r[, "score"]), mean(r[, "rmse"]), sum(r[, "seconds"])))
  }
}
