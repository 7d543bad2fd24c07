# Real data for Gaussian processes: list(x, y). Duplicated points are removed, because some peers do
# not support them.
gp_data_set <- function(name) {
  get_data <- function(package) {
    found <- new.env()
    utils::data(list = name, package = package, envir = found)
    found[[name]]
  }
  d <- switch(name,
    mcycle = list(x = cbind(MASS::mcycle$times), y = MASS::mcycle$accel),
    co2 = list(x = cbind(as.vector(stats::time(datasets::co2))), y = as.vector(datasets::co2)),
    quakes = with(datasets::quakes[seq(1, 1000, 4), ], list(x = cbind(long, lat), y = depth)),
    Boston = list(x = scale(MASS::Boston[c("lstat", "rm", "dis", "nox")]),
                  y = MASS::Boston$medv),
    meuse = with(get_data("sp"), list(x = cbind(x, y) / 1000, y = log(zinc))),
    concrete = {
      all <- get_data("modeldata")
      all <- all[seq(1, nrow(all), 4), ]
      list(x = scale(all[names(all) != "compressive_strength"]), y = all$compressive_strength)
    })
  x <- as.matrix(d$x)
  attributes(x) <- list(dim = dim(x))
  keep <- !duplicated(x)
  list(x = x[keep, , drop = FALSE], y = d$y[keep])
}
