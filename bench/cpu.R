# Level-3 operations of a CPU OpenCL device next to CLBlast on the same device, queue and buffers in
# the same run, by a C program over the core (clblast.c); the factor next to the host's LAPACK,
# which stands in the column of R. Debian: libclblast1.

if (nzchar(Sys.getenv("STATCL_USE_INSTALLED")) || !nzchar(Sys.which("make"))) {
  cat("needs a compiler\n")
} else {
  if (system2("make", c("-s", "-C", "bench")) != 0L) stop("bench/clblast.c does not build")
  lines <- system2(file.path("build", "bench", "clblast"), file.path("inst", "kernels"),
                   stdout = TRUE)
  if (!is.null(attr(lines, "status"))) stop("build/bench/clblast failed")
  for (field in strsplit(paste0(lines, ","), ",", fixed = TRUE)) {
    n <- as.numeric(field[2L])
    flops <- c(gemm = 2, `gemm tn` = 2, syrk = 1, trsm = 1, potrf = 1 / 3)[[field[1L]]] * n^3
    host <- field[5L] == "LAPACK"
    if (field[5L] == "CLBlast") note_peers("Peer of `cpu`: CLBlast.")
    add_row(data.frame(
      operation = field[1L], size = field[2L], device_ms = as.numeric(field[3L]),
      wall_ms = as.numeric(field[4L]), rate = rate(flops, NA, NA, as.numeric(field[4L])),
      peer_ms = if (host) NA_real_ else as.numeric(field[6L]),
      host_ms = if (host) as.numeric(field[6L]) else NA_real_, floor_ms = NA_real_,
      stringsAsFactors = FALSE), "wall")
  }
}
