# Worker processes: pools of them on a number, a cluster of the parallel package, a plan of the
# future package or the daemons of mirai; and the tasks that are sent to them.
#
# A task holds no handle: it names a job (a model with its data, which a worker keeps once it has
# read it), a chain, the chain's image, and how long to run it. The answer is the next image. So
# any worker can go on where another has stopped.

# ---- what a worker does --------------------------------------------------------------------------

worker <- new.env(parent = emptyenv()) # in a worker process: the job that it has read

# Sent to a worker as it is, so nothing of this package is used before versions are compared.
answer_task <- function(task) {
  if (!is.null(task$libraries)) .libPaths(c(task$libraries, .libPaths()))
  version <- tryCatch(as.character(getNamespaceVersion("statcl")), error = function(e) "none")
  if (version != task$version || R.version$platform != task$platform) {
    return(list(version = version, platform = R.version$platform))
  }
  get("run_task", envir = asNamespace("statcl"))(task)
}
environment(answer_task) <- baseenv()

# list(value, error), and warnings: as values, because their classes would be lost otherwise. An
# interrupt that came meanwhile is for the session that waits for the answer: a worker drops it.
run_task <- function(task) {
  warnings <- list()
  answer <- NULL
  compute <- function() answer <<- withCallingHandlers(
    base::tryCatch({
      if (find_job(task)) worker$run(task) else list(needs = TRUE)
    }, error = function(e) list(error = e)), statcl_warning = function(w) {
      warnings[[length(warnings) + 1L]] <<- w
      invokeRestart("muffleWarning")
    })
  if (isTRUE(task$here)) {
    suspendInterrupts(compute())
  } else {
    base::tryCatch({
      defer_interrupts(compute())
      Sys.sleep(0) # R handles a pending interrupt
    }, interrupt = function(e) NULL)
  }
  c(answer, list(warnings = warnings))
}

# Whether this process has the task's job: from before, with the task, or in a file.
find_job <- function(task) {
  if (!identical(worker$key, task$key)) {
    sent <- if (is.null(task$job)) read_checked(task$file) else task$job
    if (!identical(sent$key, task$key)) return(FALSE)
    worker$setting <- if (!isTRUE(task$here)) sent[c("globals", "options", "attached")]
    if (!isTRUE(task$here)) {
      list2env(sent$session, session)
      restore_setting(sent$globals)
      deal_device(task$slot)
    }
    worker$run <- sent$begin(sent$work)
    worker$key <- sent$key
  } else if (!is.null(worker$setting)) {
    globals <- worker$setting$globals
    restore_setting(globals[setdiff(names(globals), names(globalenv()))])
  }
  TRUE
}

# Sets up the worker's session for the job: global objects, options, packages. Between tasks future
# empties the global environment, and mirai detaches packages and resets options.
restore_setting <- function(globals) {
  if (length(globals) > 0L) list2env(globals, globalenv())
  options(worker$setting$options)
  for (package in setdiff(paste0("package:", worker$setting$attached), c("package:", search()))) {
    try(attachNamespace(sub("package:", "", package, fixed = TRUE)), silent = TRUE)
  }
}

# ---- pools ---------------------------------------------------------------------------------------

# A pool has `slots` places for a task: send(slot, task); ready(slots, seconds), those with an
# answer; receive(slot), which fails if the worker is lost; close().

open_pool <- function(workers, most) {
  if (inherits(workers, "cluster")) {
    return(cluster_pool(workers[seq_len(min(length(workers), most))]))
  }
  if (identical(workers, "mirai")) return(mirai_pool(most))
  if (is_plan(workers)) return(future_pool(workers, most))
  type <- if (can_fork()) "FORK" else "PSOCK"
  nodes <- make_workers(workers, type)
  # A terminal sends an interrupt to all processes of a job; forked ones have no thread but R's.
  if (type == "FORK") parallel::clusterCall(nodes, function() .Call(r_block_interrupts))
  pool <- cluster_pool(nodes)
  pool$close <- function() {
    for (i in seq_along(nodes)) try(parallel::stopCluster(nodes[i]), silent = TRUE)
  }
  pool
}

cluster_pool <- function(nodes) {
  connections <- lapply(nodes, function(node) node$con)
  if (!all(vapply(connections, inherits, NA, "connection"))) {
    abort_argument("workers", "the nodes of the cluster must be connected by sockets")
  }
  list(slots = length(nodes),
       send = function(slot, task) {
         data <- list(fun = answer_task, args = list(task), return = TRUE, tag = NULL)
         serialize(list(type = "EXEC", data = data, tag = NULL), connections[[slot]])
       },
       ready = function(slots, seconds) {
         slots[socketSelect(connections[slots], FALSE, seconds)]
       },
       receive = function(slot) {
         value <- unserialize(connections[[slot]])$value
         if (inherits(value, "try-error")) stop(as.character(value))
         value
       },
       close = function() NULL)
}

is_plan <- function(x) identical(x, "future") || inherits(x, c("future", "FutureStrategyList"))

future_pool <- function(plan, most) {
  old <- NULL
  if (identical(plan, "future")) plan <- future::plan() else old <- future::plan(plan)
  if (inherits(plan, "multicore")) {
    if (!is.null(old)) future::plan(old)
    abort_argument("workers", paste("a 'multicore' plan forks this process, which OpenCL does not",
                                    "survive: use plan(multisession)"))
  }
  futures <- list()
  list(slots = min(most, future::nbrOfWorkers()), renewed = TRUE,
       send = function(slot, task) {
         futures[[slot]] <<- future::future(quote(answer(task)), substitute = FALSE, seed = NULL,
                                            packages = character(),
                                            globals = list(answer = answer_task, task = task))
       },
       ready = function(slots, seconds) {
         done <- function(slot) tryCatch(future::resolved(futures[[slot]]),
                                         error = function(e) TRUE)
         found <- Filter(done, slots)
         if (length(found) == 0L) Sys.sleep(min(seconds, 0.02))
         found
       },
       receive = function(slot) future::value(futures[[slot]]),
       close = function() if (!is.null(old)) future::plan(old))
}

mirai_pool <- function(most) {
  of <- function(name) getExportedValue("mirai", name) # not in Suggests, as few have it
  sent <- list()
  count <- sum(of("status")()$connections)
  if (count < 1) abort_argument("workers", "there are no daemons: call mirai::daemons()")
  list(slots = min(most, count), renewed = TRUE,
       send = function(slot, task) {
         sent[[slot]] <<- do.call(of("mirai"), list(quote(answer(task)), answer = answer_task,
                                                    task = task))
       },
       ready = function(slots, seconds) {
         found <- Filter(function(slot) !of("unresolved")(sent[[slot]]), slots)
         if (length(found) == 0L) Sys.sleep(min(seconds, 0.02))
         found
       },
       receive = function(slot) {
         value <- sent[[slot]]$data
         if (of("is_error_value")(value)) {
           if (is.integer(value)) value <- getExportedValue("nanonext", "nng_error")(value)
           stop(paste(format(value), collapse = " "))
         }
         value
       },
       close = function() NULL)
}

# Tasks in this process, if there are no other workers left.
own_pool <- function() {
  answer <- NULL
  list(slots = 1L,
       send = function(slot, task) {
         task$here <- TRUE
         answer <<- answer_task(task)
       },
       ready = function(slots, seconds) slots, receive = function(slot) answer,
       close = function() NULL)
}

# ---- shares --------------------------------------------------------------------------------------

# Runs shares 1, ..., n in a pool of workers. `sent`: list(begin, work, uses): in a worker
# begin(work) gives the function that answers a task; `uses`: a function, or a list with functions,
# whose global objects are sent. task(i): entries of the next task of share i. take(i, answer): TRUE
# if the share is done.
run_shares <- function(n, workers, sent, task, take, done = logical(n)) {
  crew <- open_crew(workers, max(1L, sum(!done)), sent)
  on.exit(close_crew(crew))
  work_shares(crew, task, take, which(!done))
}

open_crew <- function(workers, most, sent) {
  crew <- new.env(parent = emptyenv())
  crew$key <- sprintf("%s-%d-%.6f", Sys.info()[["nodename"]], Sys.getpid(), as.double(Sys.time()))
  if (is.numeric(workers) && can_fork()) { # forked workers have the job
    worker$run <- sent$begin(sent$work)
    worker$key <- crew$key
  } else {
    crew$job <- describe_job(crew$key, sent)
    crew$file <- tempfile("statcl-job-", fileext = ".rds")
    write_checked(crew$job, crew$file)
  }
  opened <- FALSE
  on.exit(if (!opened) leave_job(crew))
  crew$pool <- open_pool(workers, most)
  crew$busy <- integer(crew$pool$slots) # the share in each slot; NA: the worker is lost
  crew$asked <- crew$failures <- 0L
  opened <- TRUE
  crew
}

close_crew <- function(crew) {
  on.exit(leave_job(crew))
  on.exit(crew$pool$close(), add = TRUE, after = FALSE)
  drain_crew(crew)
}

leave_job <- function(crew) {
  if (is.null(crew$file)) rm(list = ls(worker), envir = worker) else remove_own(crew$file)
}

work_shares <- function(crew, task, take, queue) {
  crew$task <- task
  crew$take <- take
  crew$queue <- queue
  while (length(crew$queue) > 0L || any(crew$busy > 0L, na.rm = TRUE)) {
    # An interrupt waits, so that no message is sent or read in part, and no answer is lost.
    for (slot in utils::head(which(crew$busy == 0L), length(crew$queue))) {
      defer_interrupts({
        share <- crew$queue[1L]
        crew$queue <- crew$queue[-1L]
        send_share(crew, slot, share, crew$asked > 2L * length(crew$busy))
      })
    }
    for (slot in crew$pool$ready(which(crew$busy > 0L), 1)) {
      defer_interrupts(receive_share(crew, slot))
    }
  }
}

# An interrupt is raised after `work`. suspendInterrupts() does not reach waits for the rest of a
# message: R's sockets enable interrupts there.
defer_interrupts <- function(work) {
  came <- FALSE
  value <- suspendInterrupts(withCallingHandlers(work, interrupt = function(e) {
    came <<- TRUE
    invokeRestart("resume")
  }))
  if (came) {
    signalCondition(structure(class = c("interrupt", "condition"), list(message = "", call = NULL)))
    invokeRestart("abort")
  }
  value
}

# list(map(tasks), slots, close()): map() computes run(task) for each of a list of tasks, in
# `workers` or, if these are NULL, in this process. begin(work) gives run().
open_mapper <- function(workers, most, begin, work, uses) {
  if (is.null(workers)) {
    run <- begin(work)
    return(list(map = function(tasks) lapply(tasks, run), slots = 1L, close = function() NULL))
  }
  crew <- open_crew(workers, most, list(begin = begin_map, work = list(begin = begin, work = work),
                                        uses = uses))
  list(map = function(tasks) {
    values <- vector("list", length(tasks))
    work_shares(crew, function(id) list(entry = tasks[[id]]), function(id, value) {
      values[id] <<- value
      TRUE
    }, seq_along(tasks))
    values
  }, slots = crew$pool$slots, close = function() close_crew(crew))
}

begin_map <- function(sent) {
  run <- sent$begin(sent$work)
  function(task) list(value = list(run(task$entry)))
}

describe_job <- function(key, sent) {
  globals <- global_objects_of(sent$uses)
  used <- c(if ("package:statcl" %in% search()) "statcl", attr(globals, "packages"))
  list(key = key, begin = sent$begin, work = sent$work, globals = globals,
       session = c(session_settings(), list(tuned = session$tuned, settled = list())),
       options = options()["statcl.device"], attached = used)
}

# `whole`: the job is sent too, for a worker that cannot read its file. A slot is busy only if it
# has been sent something to answer.
send_share <- function(crew, slot, share, whole = FALSE) {
  task <- c(list(key = crew$key, file = crew$file, libraries = own_libraries(), slot = slot,
                 platform = R.version$platform, version = own_version()), crew$task(share),
            if (whole) list(job = crew$job))
  crew$busy[slot] <- share
  tryCatch(crew$pool$send(slot, task), error = function(e) lose_share(crew, slot, e))
}

# The version that is loaded: the library may have a newer one by now.
own_version <- function() as.character(getNamespaceVersion(topenv()))

own_libraries <- function() c(dirname(getNamespaceInfo(topenv(), "path")), .libPaths())

receive_share <- function(crew, slot) {
  share <- crew$busy[slot]
  answer <- tryCatch(crew$pool$receive(slot), error = function(e) e)
  if (inherits(answer, "error")) return(lose_share(crew, slot, answer))
  crew$busy[slot] <- 0L
  if (!is.null(answer$version)) other_version(answer)
  for (w in answer$warnings) warning(w)
  if (isTRUE(answer$needs)) {
    crew$asked <- crew$asked + 1L
    return(send_share(crew, slot, share, TRUE))
  }
  done <- !is.null(answer$value) && crew$take(share, answer$value)
  if (!is.null(answer$error)) stop(answer$error)
  if (!done) crew$queue <- c(share, crew$queue)
}

# The share of a lost worker is done by another one or, if there is none, in this session. In pools
# with `renewed`, slots are not bound to a worker, so a slot remains usable.
lose_share <- function(crew, slot, e) {
  share <- crew$busy[slot]
  crew$failures <- crew$failures + 1L
  crew$busy[slot] <- if (isTRUE(crew$pool$renewed) && crew$failures <= 3L) 0L else NA
  crew$queue <- c(share, crew$queue)
  last <- all(is.na(crew$busy))
  if (crew$failures == 1L || last) {
    statcl_warning("worker", sprintf("a worker was lost (%s): its share, number %d, goes on in %s",
                                     substr(sub("\n.*", "", conditionMessage(e)), 1L, 100L), share,
                                     if (last) "this session" else "another one"))
  }
  if (last) {
    crew$pool$close()
    crew$pool <- own_pool()
    crew$busy <- 0L
  }
}

# After an interrupt or an error answers are read, so that a cluster stays usable. A second
# interrupt ends the wait for them.
drain_crew <- function(crew) {
  for (slot in which(crew$busy > 0L)) {
    while (length(crew$pool$ready(slot, 1)) == 0L) NULL
    defer_interrupts({
      share <- crew$busy[slot]
      crew$busy[slot] <- 0L
      answer <- tryCatch(crew$pool$receive(slot), error = function(e) NULL)
      if (!is.null(answer$value)) crew$take(share, answer$value)
    })
  }
}

other_version <- function(answer) {
  version <- answer$version
  has <- if (version == "none") "no statcl" else sprintf("version %s of statcl", version)
  statcl_abort("worker", sprintf("a worker has %s on %s, this session version %s on %s", has,
                                 answer$platform, own_version(), R.version$platform),
               argument = "workers")
}

# Where there are several devices like the one in use, workers use them in turn.
deal_device <- function(slot) {
  where <- current_device()
  if (where < 0L) return(invisible())
  alike <- alike_devices(where)
  session$device <- device_table()$id[alike[(slot - 1L) %% length(alike) + 1L] + 1L]
}

alike_devices <- function(where) {
  devices <- device_table()
  which(devices$name == devices$name[where + 1L] & devices$fp64) - 1L
}

# ---- arguments -----------------------------------------------------------------------------------

# A number of processes, a cluster, a plan or "mirai"; NULL for this process.
check_workers <- function(workers, most) {
  if (inherits(workers, "cluster")) return(workers)
  if (identical(workers, "mirai") || is_plan(workers)) {
    package <- if (is_plan(workers)) "future" else "mirai"
    if (!requireNamespace(package, quietly = TRUE)) {
      abort_argument("workers", sprintf("'workers' needs the package '%s'", package))
    }
    return(workers)
  }
  n <- min(check_count(workers, "workers", lower = 1), most)
  if (n == 1) NULL else n
}

# `where` of the devices to which this process deals chains; NULL: they use the one in use.
check_shared_devices <- function(devices, workers) {
  if (is.null(devices)) return(NULL)
  if (!is.null(workers)) {
    abort_argument("devices", "'devices' needs workers = 1: workers use devices in turn")
  }
  if (!length(devices) || anyNA(devices) || !(is.character(devices) || is.numeric(devices))) {
    abort_argument("devices", "'devices' must be \"all\", or devices as for cl_use()")
  }
  if (!identical(devices, "all")) where <- unique(vapply(devices, find_device, 0L))
  else if ((where <- current_device()) >= 0L) where <- alike_devices(where)
  if (any(where < 0L)) abort_argument("devices", "'devices' must be OpenCL devices, not the host")
  where
}
