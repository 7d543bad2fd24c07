# Fields on a triangulated plane: Matern fields with nu = 1 as solutions of a stochastic partial
# differential equation by linear finite elements (Lindgren, Rue and Lindstroem 2011). With lumped
# masses C and stiffnesses G the precision is K C^-1 K / (4 pi kappa^2), K = kappa^2 C + G, where a
# variance is 1 away from the boundary.

spde_term <- function(field, values) {
  fail <- function(text) abort_argument("formula", sprintf("'%s': %s", field$label, text))
  mesh <- read_mesh(field$given$mesh, fail)
  n <- nrow(mesh$loc)
  parts <- mesh_matrices(mesh, fail)
  own <- parts$i == parts$j
  root <- sqrt(parts$mass)
  row <- parts$i
  mass <- ifelse(own, parts$mass[row], 0)
  stiff <- parts$stiff
  kernel <- function(par) {
    kappa <- sqrt(8) / exp(par[2L])
    kappa * kappa * mass + stiff
  }
  extent <- max(apply(check_coordinates(values$coords, fail), 2L, function(v) diff(range(v))))
  if (extent == 0) fail("all points are the same")
  inner <- function(par) {
    kernel(par) / root[row] * (exp(par[2L]) / sqrt(8) / sqrt(4 * pi))
  }
  list(size = n, start = c(0, log(extent / 4)),
       rows = list(i = row, j = parts$j, count = n, values = inner),
       log_det = function(par) {
         2 * traced_log_det(new_sparse(kernel(par), row - 1L, parts$j - 1L, c(n, n), TRUE)) -
           sum(log(parts$mass)) + n * (2 * par[2L] - log(8) - log(4 * pi))
       },
       rank = n, free = 0L, spread = 1, what = "marginal", others = "range",
       shown = function(par) exp(par),
       find = function(values, fail)
         mesh_points(mesh, check_coordinates(values$coords, fail), fail),
       effects = list(labels = as.character(seq_len(n)),
                      parts = list(list(at = seq_len(n), weight = 1, k = 1L))))
}

check_coordinates <- function(x, fail) {
  if (is.data.frame(x)) x <- as.matrix(x)
  if (!is.numeric(x) || !is.matrix(x) || ncol(x) != 2L || !all(is.finite(x))) {
    fail("the coordinates must be a matrix of two columns, such as cbind(x, y)")
  }
  x
}

# list(loc, tv), also as fmesher keeps them.
read_mesh <- function(mesh, fail) {
  if (!is.list(mesh)) mesh <- list()
  loc <- mesh[["loc"]]
  tv <- if (is.null(mesh[["tv"]])) mesh[["graph"]][["tv"]] else mesh[["tv"]]
  if (!is.matrix(loc) || !is.numeric(loc) || ncol(loc) < 2L ||
        !is.matrix(tv) || !is.numeric(tv) || ncol(tv) != 3L || nrow(tv) == 0L) {
    fail("'mesh' must be a list of 'loc', vertices in rows, and 'tv', triangles in rows")
  }
  if (!all(is.finite(loc))) fail("the vertices of 'mesh' must be finite")
  if (ncol(loc) > 2L && any(loc[, 3L] != loc[1L, 3L])) fail("'mesh' must be a plane")
  if (anyNA(tv) || any(tv < 1 | tv > nrow(loc) | tv != round(tv))) {
    fail(sprintf("the triangles of 'mesh' must be numbers of vertices, from 1 to %d", nrow(loc)))
  }
  alone <- setdiff(seq_len(nrow(loc)), tv)
  if (length(alone) > 0L) fail(sprintf("vertex %d of 'mesh' belongs to no triangle", alone[1L]))
  list(loc = unname(loc[, 1:2]), tv = unname(tv))
}

# Of each triangle the edges opposite of its corners, and twice its area.
mesh_edges <- function(mesh) {
  corner <- lapply(1:3, function(k) mesh$loc[mesh$tv[, k], , drop = FALSE])
  edge <- list(corner[[3L]] - corner[[2L]], corner[[1L]] - corner[[3L]],
               corner[[2L]] - corner[[1L]])
  list(corner = corner, edge = edge,
       twice = edge[[1L]][, 1L] * edge[[2L]][, 2L] - edge[[1L]][, 2L] * edge[[2L]][, 1L])
}

# list(mass: of each vertex; i, j, stiff: by columns).
mesh_matrices <- function(mesh, fail) {
  e <- mesh_edges(mesh)
  area <- abs(e$twice) / 2
  flat <- which(area <= 1e-12 * vapply(seq_along(area), function(k)
    max(rowSums(do.call(rbind, lapply(e$edge, function(v) v[k, ]))^2)), 0))
  if (length(flat) > 0L) fail(sprintf("triangle %d of 'mesh' has no area", flat[1L]))
  n <- nrow(mesh$loc)
  pairs <- expand.grid(1:3, 1:3)
  key <- unlist(Map(function(k, l) mesh$tv[, k] + n * (mesh$tv[, l] - 1), pairs[[1L]],
                    pairs[[2L]]))
  value <- unlist(Map(function(k, l) rowSums(e$edge[[k]] * e$edge[[l]]) / (4 * area), pairs[[1L]],
                      pairs[[2L]]))
  known <- sort(unique(key))
  list(mass = as.vector(base::rowsum(rep(area / 3, 3L), as.vector(mesh$tv))),
       i = as.integer((known - 1) %% n + 1), j = as.integer((known - 1) %/% n + 1),
       stiff = as.vector(base::rowsum(value, match(key, known))))
}

# The corners of the triangle of each point, with barycentric weights. The candidates are the
# triangles whose bounding box meets the point's cell of a grid.
mesh_points <- function(mesh, x, fail) {
  e <- mesh_edges(mesh)
  low <- apply(mesh$loc, 2L, min)
  size <- apply(mesh$loc, 2L, max) - low
  cells <- ceiling(sqrt(nrow(mesh$tv)))
  cell_of <- function(v) pmin(pmax(floor(v * cells), 0), cells - 1)
  ends <- lapply(1:2, function(d) {
    at <- vapply(e$corner, function(p) p[, d], numeric(nrow(mesh$tv)))
    at <- (matrix(at, ncol = 3L) - low[d]) / size[d]
    list(from = cell_of(apply(at, 1L, min) - 1e-9), to = cell_of(apply(at, 1L, max) + 1e-9))
  })
  wide <- lapply(ends, function(d) d$to - d$from + 1)
  triangle <- rep(seq_len(nrow(mesh$tv)), wide[[1L]] * wide[[2L]])
  number <- sequence(wide[[1L]] * wide[[2L]]) - 1
  cell <- ends[[1L]]$from[triangle] + number %% wide[[1L]][triangle] +
    cells * (ends[[2L]]$from[triangle] + number %/% wide[[1L]][triangle])
  by <- order(cell)
  cell <- cell[by]
  triangle <- triangle[by]
  own <- cell_of((x[, 1L] - low[1L]) / size[1L]) + cells * cell_of((x[, 2L] - low[2L]) / size[2L])
  first <- match(own, cell)
  count <- ifelse(is.na(first), 0L, tabulate(match(cell, own), length(own))[match(own, own)])
  point <- rep(seq_len(nrow(x)), count)
  t <- triangle[rep(first, count) + sequence(count) - 1L]
  weights <- vapply(1:3, function(k) {
    from <- e$corner[[k %% 3 + 1]][t, , drop = FALSE]
    edge <- e$edge[[k]][t, , drop = FALSE]
    d <- x[point, , drop = FALSE] - from
    (edge[, 1L] * d[, 2L] - edge[, 2L] * d[, 1L]) / e$twice[t]
  }, numeric(length(t)))
  weights <- matrix(weights, ncol = 3L)
  inside <- pmin(weights[, 1L], weights[, 2L], weights[, 3L])
  best <- order(point, -inside)
  best <- best[!duplicated(point[best]) & inside[best] >= -1e-8]
  outside <- setdiff(seq_len(nrow(x)), point[best])
  if (length(outside) > 0L) {
    fail(sprintf("the point (%g, %g) is outside of the mesh", x[outside[1L], 1L],
                 x[outside[1L], 2L]))
  }
  best <- best[order(point[best])]
  lapply(1:3, function(k) list(at = mesh$tv[t[best], k], weight = weights[best, k], k = 1L))
}
