# Saving and sending matrices (src/r/serialize.c).

restored <- function(x, ...) unserialize(serialize(x, NULL, ...))

test_each_engine("a matrix is saved with its values, shape, names and view", {
  plain <- matrix(c(NA, NaN, -0, Inf, 5e-324, 1.5), 3, dimnames = list(letters[1:3], NULL))
  square <- crossprod(matrix(sin(1:12), 4))
  matrices <- list(plain = as_cl(plain), empty = as_cl(matrix(0, 0, 3)), one = as_cl(7),
                   lower = as_cl(square, view = "lower"), upper = as_cl(square, view = "upper"),
                   symmetric = as_cl(square, view = "symmetric"),
                   pending = exp(as_cl(square)) + 1, part = (as_cl(square) * 2)[2:3, ],
                   transposed = t(as_cl(plain)), large = as_cl(matrix(sin(1:800000), 1000)))
  file <- tempfile()
  on.exit(unlink(file))
  for (again in list(restored(matrices), restored(matrices, xdr = FALSE), {
    saveRDS(matrices, file)
    readRDS(file)
  }, {
    space <- new.env()
    save(matrices, file = file)
    load(file, space)
    space$matrices
  })) {
    for (name in names(matrices)) {
      expect(identical(as.matrix(again[[name]]), as.matrix(matrices[[name]])), name)
      expect_identical(again[[name]]@view, matrices[[name]]@view)
    }
  }
  text <- restored(as_cl(square), ascii = TRUE) # R writes 15 digits
  expect_equal(as.matrix(text), square, tolerance = 1e-14)
})

test_that("a restored matrix can be used, freed, and saved again", {
  square <- crossprod(matrix(sin(1:12), 4)) + diag(3)
  fresh <- function() restored(as_cl(square, view = "symmetric"))
  each_engine({
    expect_output(print(fresh()), "symmetric, 72 B on ")
    expect_equal(as.matrix(fresh() + fresh()), 2 * square)
    expect_equal(as.matrix(exp(fresh())), exp(square))
    expect_equal(as.matrix(solve(fresh())), solve(square))
    expect_equal(sum(fresh()), sum(square))
    expect_equal(fresh()[2, ], square[2, ])
    expect_equal(as.matrix(cl_ifelse(fresh() > 0, fresh(), 0)), pmax(square, 0))
    expect_identical(as.matrix(restored(fresh())), square)
    x <- fresh()
    y <- x * 2
    expect_identical(as.matrix(restored(restored(y))), square * 2)
    cl_free(x)
    expect_fault(as.matrix(x), "stale")
    expect_fault(as.matrix(restored(x)), "stale")
    expect_output(print(restored(x)), "3 x 3")
    expect_identical(as.matrix(y), square * 2)
    x <- fresh()
    cl_free(x)
    expect_fault(x + 1, "stale")
    pair <- restored(list(a = y, b = y))
    expect_identical(pair$a@handle, pair$b@handle) # one copy of the data
    values <- array(1:8 + 0, c(2, 2, 2), list(NULL, c("a", "b"), NULL))
    expect_identical(as.array(restored(as_cl(values))), values)
  })
  # It is uploaded to the engine in use.
  on_device({
    there <- as_cl(square)
    here <- on_host({
      x <- restored(there)
      x + as_cl(square)
    })
    expect_match(format(here + 0), "pending")
    expect_equal(as.matrix(here), 2 * square)
  })
  each_engine(expect_no_leak({
    x <- fresh()
    y <- x %*% x
    restored(x + 1)
  }))
})

test_that("a matrix can be sent to another process, or the error says why not", {
  square <- diag(2) + 0.5
  each_engine({
    file <- tempfile()
    on.exit(unlink(file))
    saveRDS(list(as_cl(square) * 2), file)
    # A new R, in which the package is not attached.
    code <- sprintf("x <- readRDS('%s'); cat(as.matrix(x[[1]]))", file)
    output <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE,
                      env = paste0("R_LIBS=", paste(.libPaths(), collapse = ":")))
    expect_identical(output, "3 1 1 3")
  })
  skip_on_os("windows")
  x <- on_host(as_cl(square))
  results <- on_host(parallel::mclapply(1:2, function(i) x * i, mc.cores = 2))
  expect_identical(lapply(results, as.matrix), list(square, square * 2))
  on_device({
    x <- as_cl(square)
    job <- parallel::mcparallel(list(x))
    sent <- parallel::mccollect(job)[[1]][[1]]
    expect_fault(as.matrix(sent), "stale", says = "fork")
  })
})

test_on_host("files without values and tampered files give a matrix without data", {
  x <- as_cl(matrix(c(1.25, 2, 3, 4, 5, 6), 3))
  old <- restored(x, version = 2)
  expect_fault(as.matrix(old), "stale")
  expect_output(print(old), "3 x 2")
  text <- rawToChar(serialize(x, NULL, ascii = TRUE))
  tampered <- c(gsub("\n13\n2\n3\n2\n", "\n13\n2\n-3\n2\n", text),
                gsub("\n13\n2\n3\n2\n", "\n13\n2\n3\n2000000000\n", text),
                gsub("\n13\n2\n3\n2\n", "\n13\n1\n6\n", text),
                gsub("\n13\n1\n0\n", "\n13\n1\n7\n", text), # the view
                gsub("\n13\n1\n0\n", "\n13\n1\n2\n", text))
  expect_false(any(tampered == text))
  for (bad in tampered) {
    y <- unserialize(charToRaw(bad))
    expect_fault(.Call(r_matrix_to_host, y@handle), "stale")
    expect_fault(cl_chol(new_cl(y@handle, c(3L, 3L))), "stale")
  }
  # A record of deferred arithmetic in a file is ignored, whatever it contains.
  forged <- gsub("statcl_matrix", "statcl_matriy", text)
  expect_fault(.Call(r_matrix_to_host, unserialize(charToRaw(forged))@handle), "argument")
})
