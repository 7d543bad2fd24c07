# Kernels of points on the Earth: their longitudes and latitudes become coordinates in space, in km,
# behind the columns of x. Distances between these are chords; distances along a great circle follow
# from them (inst/kernels/include/covariance_functions.h).

earth_radius <- 6371.0088

check_distance <- function(distance, type, columns) {
  distance <- check_choice(distance, c("euclidean", "great_circle", "chordal"), "distance")
  if (distance == "euclidean") return(NULL)
  if (distance == "great_circle" && type != "exponential") {
    abort_argument("distance", paste("distance = \"great_circle\" is for k_exponential(), which is",
                                     "k_matern(0.5): smoother functions of it are not positive",
                                     "definite on the sphere. Use \"chordal\""))
  }
  if (!length(columns) %in% c(0L, 2L)) refuse_place()
  distance
}

refuse_place <- function() {
  abort_argument("columns", "'columns' must be those of the longitude and the latitude, in degrees")
}

# The two columns of each term on the sphere, a row for each different pair; NULL if there is none.
sphere_pairs <- function(kernel, p, names) {
  pairs <- lapply(Filter(function(term) !is.null(term$distance), kernel$terms), function(term) {
    used <- find_columns(term$columns, p, names)
    if (length(used) != 2L) refuse_place()
    used
  })
  if (length(pairs) > 0L) unique(do.call(rbind, pairs))
}

# The columns of a term's coordinates in space.
sphere_place <- function(kernel, term, p, names) {
  pairs <- sphere_pairs(kernel, p, names)
  own <- find_columns(term$columns, p, names)
  p + 3L * (which(pairs[, 1L] == own[1L] & pairs[, 2L] == own[2L]) - 1L) + 1:3
}

# The points as C takes them: with the columns in space.
kernel_points <- function(kernel, x, names = colnames(x)) {
  pairs <- sphere_pairs(kernel, ncol(x), names)
  if (is.null(pairs)) return(x)
  host <- unname(as.matrix(x))
  for (k in seq_len(nrow(pairs))) host <- cbind(host, sphere_points(host, pairs[k, ]))
  if (is_cl(x)) as_cl(host) else host
}

# The same for a result of covariance_input().
kernel_input <- function(kernel, input, x, names) {
  if (all(vapply(kernel$terms, function(term) is.null(term$distance), NA))) return(input)
  at <- kernel_points(kernel, if (is_cl(x)) x else input, names)
  if (is_cl(at)) at@handle else at
}

sphere_points <- function(x, pair) {
  if (any(abs(x[, pair[2L]]) > 90, na.rm = TRUE)) {
    abort_argument("x", sprintf("column %d of the points has latitudes beyond 90 degrees",
                                pair[2L]))
  }
  at <- x[, pair, drop = FALSE] * (pi / 180)
  earth_radius * cbind(cos(at[, 2L]) * cos(at[, 1L]), cos(at[, 2L]) * sin(at[, 1L]), sin(at[, 2L]))
}

# Derivatives by the columns of x from those by the columns of kernel_points().
sphere_slopes <- function(kernel, slope, x, names = colnames(x)) {
  pairs <- sphere_pairs(kernel, ncol(x), names)
  if (is.null(pairs)) return(slope)
  p <- ncol(x)
  resident <- is_cl(slope)
  slope <- as.matrix(slope)
  host <- as.matrix(x)
  for (k in seq_len(nrow(pairs))) {
    space <- slope[, p + 3L * (k - 1L) + 1:3, drop = FALSE]
    at <- sphere_points(host, pairs[k, ])
    level <- sqrt(at[, 1L]^2 + at[, 2L]^2)
    lon <- host[, pairs[k, 1L]] * (pi / 180)
    by <- cbind(space[, 2L] * at[, 1L] - space[, 1L] * at[, 2L],
                space[, 3L] * level - at[, 3L] * (space[, 1L] * cos(lon) + space[, 2L] * sin(lon)))
    slope[, pairs[k, ]] <- slope[, pairs[k, ]] + by * (pi / 180)
  }
  slope <- slope[, seq_len(p), drop = FALSE]
  if (resident) as_cl(slope) else slope
}
