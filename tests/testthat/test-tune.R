# The rules of cl_tune() with times given by the tests: no test is timed.

# A task with results that agree, or not, and times given by functions of the size.
fake_tune <- function(host, device, sizes = 2^(0:10), budget = 100, agree = TRUE, cost = 0,
                      shapes = list(square = 1), known = NULL) {
  clock <- 0
  task <- list(sizes = sizes, shapes = shapes, make = function(size, shape) {
    function() if (agree || session$engine == "host") c(size, 1) else c(size, 1.001)
  })
  time <- function(run, size, shape) {
    clock <<- clock + cost * size
    c(host = host(size), device = device(size))
  }
  if (is.null(known)) known <- settle_layers(list(default = c(chol = 1200)))
  tune_sizes(list(chol = task), known, budget, FALSE, time, function() clock)
}

# Measurements run on both engines, so a device is needed for the results that are compared.
test_on_device("the crossing is interpolated between the sizes around it", {
  # cubes against a constant: they cross at 100, and are straight lines in logarithms
  found <- fake_tune(function(n) n^3, function(n) 1e6)
  expect_equal(found$sizes$threshold, 100)
  expect_equal(found$sizes$before, 1200)
  expect_equal(found$sizes$source, "default")
  expect_match(found$sizes$why, "crossing between")
  # the interval of the crossing is narrowed
  sizes <- found$points$size
  expect_lt(min(sizes[sizes > 100]) / max(sizes[sizes < 100]), 1.1)
  expect_true(all(found$points$agree))
})

test_on_device("the device is used never, always, or as before where there was no time", {
  never <- fake_tune(function(n) 1, function(n) 2)$sizes
  expect_equal(never$threshold, Inf)
  expect_match(never$why, "host 2 times as fast at 1024")
  always <- fake_tune(function(n) 3, function(n) 2)$sizes
  expect_equal(always$threshold, 1)
  short <- fake_tune(function(n) n^3, function(n) 1e6, budget = 100, cost = 1)
  expect_equal(short$sizes$threshold, 1200)
  expect_true(is.na(short$sizes$found))
  expect_match(short$sizes$why, "no time")
  expect_equal(max(short$points$size), 32) # 63 of 100 are spent, the next takes 64
})

test_that("a device with other results is refused", {
  on_device({
    wrong <- fake_tune(function(n) n^3, function(n) 1e6, agree = FALSE)$sizes
    expect_equal(wrong$threshold, Inf)
    expect_match(wrong$why, "differ")
  })
  expect_true(agree_closely(c(1e8, 1), c(1e8, 2)))
  expect_false(agree_closely(c(1, 1), c(1, 2)))
  expect_false(agree_closely(c(1, 1), c(1, NA)))
  expect_false(agree_closely(c(1, 1), 1))
  expect_true(agree_closely(numeric(), numeric()))
})

test_that("of several crossings and shapes the threshold loses least", {
  points <- function(size, host, device) {
    data.frame(size = size, host = host, device = device, agree = TRUE)
  }
  # one slow measurement of the host at a small size decides nothing
  fluke <- points(1:6, c(1, 9, 1, 1, 4, 9), c(2, 8, 4, 3, 2, 3))
  expect_equal(choose_threshold(fluke, TRUE)$between, 4:5)
  # two shapes that cross at 2 and 8
  shapes <- points(rep(2^(0:5), 2), rep(1, 12), c(2 / 2^(0:5), 8 / 2^(0:5)))
  expect_equal(choose_threshold(shapes, TRUE)$value, 4)
  # without a difference the host
  expect_equal(choose_threshold(points(1:3, 1, 1), TRUE)$value, Inf)
})

test_that("cl_tune() gives an object that explains and plots its choices", {
  with_cl({
    expect_message(none <- cl_tune(), "no device")
    expect_output(print(none), "no device")
    expect_message(expect_identical(plot(none), none), "no device")
    expect_null(none$sizes)
  }, engine = "host")
  on_device({
    tuned <- structure(c(list(device = "A device", driver = "1", saved = FALSE),
                         fake_tune(function(n) n^3, function(n) 1e6)), class = "cl_tuning")
    expect_output(print(tuned), "chol +100 +rows; before 1200 \\(default\\)")
    expect_output(print(tuned), "For this session")
    loss <- summary(tuned)
    expect_equal(loss$loss, 1)
    expect_equal(loss$loss_before, 512^3 / 1e6) # at 256 and 512 the device was 3 times as fast
    file <- tempfile(fileext = ".pdf")
    grDevices::pdf(file)
    on.exit({ grDevices::dev.off(); unlink(file) })
    expect_identical(expect_invisible(plot(tuned)), tuned)
  })
})

test_that("every operation can be measured, and chooses by the unit of its threshold", {
  tasks <- tune_tasks()
  old <- options(statcl.thresholds = c(matmul = 1)) # small products ask too
  on.exit(options(old))
  space <- known
  space$maps <- list() # functions that cl_map() knows do not ask
  seen <- numeric()
  note <- function(op, size, ...) { seen[[op]] <<- work_size(size); -1L }
  expect_setequal(names(tasks), threshold_table$op)
  for (op in setdiff(names(tasks), "program")) { # test-engine-choice.R has that one
    task <- tasks[[op]]
    size <- task$sizes[1L]
    for (shape in names(task$shapes)) {
      seen <- numeric()
      with_functions(list(where_for = note),
                     with_cl(task$make(size, task$shapes[[shape]])(), engine = "host"))
      expect_equal(seen[[op]], size, tolerance = 0.25, info = paste(op, shape))
    }
  }
  expect_equal(harmonic_mean(c(10, 10, 10)), 10)
  expect_equal(harmonic_mean(c(0, 10, 10)), 0)
  expect_equal(harmonic_mean(c(1, 1e5, 1e5)), 3, tolerance = 1e-4)
  expect_equal(geometric_mean(50000L, 50000L), 50000)
})

test_that("layers take precedence in order, and what is not permitted counts for nothing", {
  known <- settle_layers(list(default = c(chol = 1, gp = 2, glm = 3), shipped = c(gp = 4, glm = 5),
                              saved = NULL, session = c(glm = 6, chol = NaN, nobody = 1),
                              option = c(arith = -1)))
  expect_equal(known$value[c("chol", "gp", "glm", "arith", "batch")],
               c(chol = 1, gp = 4, glm = 6, arith = Inf, batch = Inf))
  expect_equal(unname(known$source[c("chol", "gp", "glm", "arith")]),
               c("default", "shipped", "session", "default"))
})

test_that("the shipped table is read by name and type", {
  table <- shipped_table()
  expect_true(all(table$name %in% c("*", threshold_table$op, tunables()$name)))
  expect_true(all(table$type %in% c("", "gpu", "cpu", "accelerator")))
  expect_true(all(table$value >= 0) && all(nzchar(table$origin)))
  device <- function(name, type) data.frame(name = name, type = type)
  for (type in c("cpu", "accelerator", "other")) {
    known <- settle_layers(shipped_tuning(device("pthread-x", type)))$value
    expect_true(all(is.infinite(known[threshold_table$op])), info = type)
  }
  expect_equal(settle_layers(shipped_tuning(device("Any", "gpu")))$value[["chol"]], 1200)
  file <- tempfile()
  on.exit(unlink(file))
  writeLines(c("# remark", "device,type,name,value,origin", ",gpu,*,7,x", ",gpu,chol,8,x",
               "^fast [0-9]+,gpu,chol,9,x", ",cpu,*,Inf,x"), file)
  own <- shipped_table(file)
  fast <- settle_layers(shipped_tuning(device("FAST 900", "gpu"), own))
  expect_equal(fast$value[c("chol", "gp")], c(chol = 9, gp = 7))
  expect_equal(fast$source[c("chol", "gp")], c(chol = "shipped", gp = "default"))
  expect_equal(settle_layers(shipped_tuning(device("slow", "gpu"), own))$value[["chol"]], 8)
})

test_that("parameters of kernels are shown, set, and refused", {
  own <- tunables()
  skip_if(length(own$name) == 0L, "no device engine")
  expect_true(all(mapply(`%in%`, own$default, own$permitted)))
  expect_setequal(own$name, names(kernel_tasks()))
  on_device({
    shown <- cl_thresholds(kernels = TRUE)
    expect_equal(shown$value, shown$default)
    expect_true(all(shown$source == "default"))
    old <- options(statcl.thresholds = c(sum_groups = 16, gemm_thin_groups = 3))
    on.exit(options(old))
    shown <- cl_thresholds(kernels = TRUE)
    expect_equal(subset(shown, name == "sum_groups")$value, 16)
    expect_equal(subset(shown, name == "sum_groups")$source, "option")
    expect_equal(subset(shown, name == "gemm_thin_groups")$value, 8) # 3 is not permitted
    where <- current_device()
    expect_error(.Call(r_tune, where, "sum_groups", 5), "5 is no value of 'sum_groups'")
    expect_error(.Call(r_tune, where, "nobody", 1), "nobody")
  })
})

test_on_device(
  "every permitted value gives the same results, and the fastest right one is chosen", {
  where <- current_device()
  device <- device_table()[where + 1L, ]
  tried <- tune_kernels(where, device, 100, time = function(run) 1)
  expect_true(all(tried$agree))
  expect_equal(unique(tried$name[tried$chosen]), unique(tried$name))
  expect_equal(tried$value[tried$chosen], with(tunables(), default[match(
    unique(tried$name), name)]))
  value <- 0
  fake <- function(wrong, seconds) {
    task <- list(gemm_split_groups = function() function() if (value %in% wrong) 2 else 1)
    rows <- tune_kernels(where, device, 100, task, function(run) seconds[[as.character(value)]],
                         function(v) value <<- v)
    rows$value[rows$chosen]
  }
  seconds <- c("1" = 0.5, "2" = 1, "4" = 0.8, "8" = 0.97)
  expect_equal(fake(NULL, seconds), 1)
  expect_equal(fake(1, seconds), 4)
  expect_equal(fake(c(1, 4), seconds), 2) # less than 5 per cent are no gain
  expect_equal(value, 2, ignore_attr = TRUE)
  calls <- 0
  once <- function(run) { calls <<- calls + 1; if (value == 1 && calls <= 4) 0.5 else 1 }
  task <- list(gemm_split_groups = function() function() 1)
  rows <- tune_kernels(where, device, 100, task, once,
                       function(v) value <<- v)
  expect_equal(rows$value[rows$chosen], 2) # what was fast once is not chosen
})

# Evaluates code with a configuration folder of its own, and nothing known of earlier sessions.
with_config <- function(code) {
  folder <- tempfile("config")
  old <- Sys.getenv("R_USER_CONFIG_DIR", NA)
  Sys.setenv(R_USER_CONFIG_DIR = folder)
  before <- session$tuned
  on.exit({
    if (is.na(old)) Sys.unsetenv("R_USER_CONFIG_DIR") else Sys.setenv(R_USER_CONFIG_DIR = old)
    next_session()
    session$tuned <- before
    unlink(folder, recursive = TRUE)
  })
  next_session()
  code(folder)
}

next_session <- function() {
  session$tuned <- session$settled <- list()
  session$saved <- NULL
}

test_that("numbers are saved on request only, and used by later sessions", {
  expect_refused("save", cl_tune(save = NA))
  on_device(with_config(function(folder) {
    row <- function(name = "matmul") subset(cl_thresholds(), op == name)
    usual <- row()
    cl_tune("matmul", budget = 0.01, verbose = FALSE)
    expect_false(file.exists(folder))
    session$tuned[[cl_devices()$id[cl_devices()$default]]] <- c(matmul = 5)
    session$settled <- list()
    expect_equal(row()$threshold, 5)
    expect_equal(row()$source, "session")
    next_session()
    expect_equal(row(), usual)
    device <- device_table()[current_device() + 1L, ]
    expect_message(save_tuning(device, c(chol = 50, matmul = 321.5)), "tuning.csv")
    another <- device
    another$name <- "another, \"the\" one"
    expect_message(save_tuning(another, c(matmul = 1)), "another")
    expect_message(save_tuning(device, c(chol = Inf)), "tuning.csv")
    expect_equal(row()$threshold, 321.5)
    expect_equal(row()$source, "saved")
    expect_equal(row("chol")$threshold, Inf)
    expect_equal(nrow(read_tuning()), 3L)
    expect_equal(list.files(folder, recursive = TRUE, pattern = "part$"), character())
    expect_message(cl_tune("matmul", budget = 0.01, verbose = FALSE, save = TRUE), "saved")
  }))
})

test_that("what was saved for another driver, version or host is ignored", {
  on_device(with_config(function(folder) {
    device <- device_table()[current_device() + 1L, ]
    usual <- cl_thresholds()
    suppressMessages(save_tuning(device, c(chol = 50)))
    expect_equal(subset(cl_thresholds(), op == "chol")$threshold, 50)
    for (column in c("driver", "source", "host", "device")) {
      session$saved <- read_tuning()
      session$saved[[column]] <- "other"
      session$settled <- list()
      expect_equal(cl_thresholds(), usual, info = column)
    }
    session$saved <- read_tuning()
    session$saved$value <- -1
    session$settled <- list()
    expect_equal(cl_thresholds(), usual)
  }))
})

test_that("damaged files are ignored with one warning, and replaced", {
  on_device(with_config(function(folder) {
    device <- device_table()[current_device() + 1L, ]
    usual <- cl_thresholds()
    suppressMessages(save_tuning(device, c(chol = 50, gp = 60)))
    right <- readLines(tuning_file())
    damages <- list("nonsense", character(), right[-1L], head(right, -1L),
                    sub("50", "51", right, fixed = TRUE), c(right, ""),
                    rawToChar(as.raw(c(0x80, 0x81))))
    for (lines in damages) {
      writeLines(lines, tuning_file(), useBytes = TRUE)
      next_session()
      expect_warning(known <- cl_thresholds(), "is damaged and is ignored")
      expect_equal(known, usual)
      expect_silent(cl_thresholds()) # reported once
    }
    next_session()
    suppressWarnings(expect_message(save_tuning(device, c(chol = 70)), "saved"))
    expect_equal(subset(cl_thresholds(), op == "chol")$threshold, 70)
    unlink(folder, recursive = TRUE)
    writeLines("a file", folder)
    expect_warning(done <- save_tuning(device, c(chol = 80)), "cannot be written")
    expect_false(done)
  }))
})

test_that("a flipped bit of the file is found, and a link is not replaced", {
  file <- tempfile(fileext = ".csv")
  device <- list(name = "a device", driver = "1.0")
  expect_message(save_tuning(device, c(chol = 50, gp = 60), file), "saved")
  expect_identical(read_tuning(file)$value, c(50, 60))
  bytes <- read_raw(file)
  for (k in seq(0L, 8L * length(bytes) - 1L, by = full_or_quick(1L, 11L))) {
    at <- 1L + k %/% 8L
    flipped <- bytes
    flipped[at] <- xor(bytes[at], as.raw(2^(k %% 8L)))
    writeBin(flipped, file)
    if (nrow(suppressWarnings(read_tuning(file))) > 0L) fail(sprintf("bit %d", k))
  }
  skip_on_os("windows")
  writeBin(bytes, file)
  link <- tempfile()
  file.symlink(file, link)
  expect_warning(save_tuning(device, c(chol = 70), link), "cannot be written")
  expect_identical(Sys.readlink(link), file)
  expect_identical(read_raw(file), bytes)
  expect_length(list.files(dirname(link), "^tuning.*part$"), 0L)
})

test_that("the folders of a user are those of R", {
  settings <- c("R_USER_CONFIG_DIR", "XDG_CONFIG_HOME", "R_USER_CACHE_DIR", "XDG_CACHE_HOME")
  old <- Sys.getenv(settings, NA)
  on.exit({
    Sys.unsetenv(settings)
    if (!all(is.na(old))) do.call(Sys.setenv, as.list(old[!is.na(old)]))
  })
  Sys.unsetenv(settings)
  for (set in c(list(character()), as.list(settings), list(settings[3:4]))) {
    if (length(set) > 0L) {
      do.call(Sys.setenv, stats::setNames(as.list(file.path(tempdir(), set)), set))
    }
    for (kind in c("config", "cache")) {
      expect_identical(user_folder(kind), tools::R_user_dir("statcl", kind))
    }
  }
})
