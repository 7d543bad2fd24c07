# Which engine has done the work of a fit, and why: the note that a fit keeps, and its sentence.
#
# A note is list(where = "host" or the name of a device, why = a word of engine_reasons, and what
# its sentence needs: op, size, limit; host and device, microseconds).

# From here on where_for() keeps what it was asked last for the threshold `op`. A part of a fit
# belongs to the fit's note.
begin_note <- function(op) if (is.null(session$chosen[[op]])) session$notes[[op]] <- NULL

engine_name <- function(where) if (where < 0L) "host" else device_table()$name[where + 1L]

# The note of work for which where_for(op, ) was asked since begin_note().
engine_note <- function(op) {
  asked <- session$notes[[op]]
  if (is.null(asked)) {
    return(list(where = "host", why = if (session$engine == "host") "forced" else "only"))
  }
  size <- asked[[1L]]
  where <- as.integer(asked[[2L]])
  if (is.na(size)) return(list(where = engine_name(where), why = "data"))
  c(list(where = engine_name(where)),
    choice_reason(op, size, where, asked[[3L]], asked[[4L]]), list(op = op, size = size))
}

# The note of data that C has on an engine: `info` is list(host, device), the others as for
# where_for().
handle_note <- function(info, op, size, times = 1, kind = op) {
  host <- is.null(info) || info$host
  size <- work_size(size)
  c(list(where = if (host) "host" else info$device, op = op, size = size),
    choice_reason(op, size, if (host) -1L else 0L, times, kind))
}

# list(why, limit) of a choice for this size.
choice_reason <- function(op, size, where, times = 1, kind = op) {
  limit <- NULL
  known <- !is.null(session$devices) || names_device()
  if (known && current_device() >= 0L) limit <- threshold(op, current_device())
  why <- if (session$engine != "auto") "forced"
    else if (where >= 0L) if (is_asked_for(op)) "option" else "above"
    else if (forked()) "forked"
    else if (!known) if (size < least_limit(op)) "least" else "opening"
    else if (is.null(limit)) "none"
    else if (size < limit) "below"
    else if (!is.null(session$refused[[op]])) "refused"
    else if (is.null(session$opened_by)) "opening"
    else if (op %in% session$waits) "building"
    else if (is_slower(kind, size, current_device(), times)) "slower"
    else if (lacks_host(op, size, current_device(), times, kind)) "compared"
    else "unbuilt"
  list(why = why, limit = limit)
}

# The note of a compiled function of this cost (program_cost(), or NULL) that runs at `where`; with
# `gain` a device would be faster.
program_note <- function(cost, where, gain = 0) {
  known <- !is.null(session$devices) || names_device()
  device <- if (known && session$engine != "host") current_device() else -1L
  note <- list(where = engine_name(where), why = if (session$engine != "auto") "forced"
    else if (is.null(cost)) if (where >= 0L) "option" else if (device < 0L && known) "none"
      else "only"
    else if (gain > 0 && (!known || is.null(session$opened_by))) "opening"
    else if (gain > 0) if ("program" %in% session$waits) "building" else "often"
    else "cost")
  if (!is.null(cost) && session$engine == "auto") {
    note$host <- cost$host
    if (device >= 0L) note$device <- device_time(cost, threshold("program", device))
  }
  note
}

engine_reasons <- c(
  forced = "chosen by cl_use()", option = "by the option statcl.thresholds",
  above = "size %s is above %s, \"%s\" in cl_thresholds()",
  below = "size %s is below %s, \"%s\" in cl_thresholds()",
  least = "size %s is below the threshold of any device",
  forked = "a forked process uses no device", none = "no GPU is in use",
  opening = "the device was not open yet",
  unbuilt = "kernels for the device are not built yet, see ?cl_use",
  building = "kernels for the device are being built",
  often = "kernels for the device are built if the function is called often",
  refused = "kernels for the device do not compile, see cl_sitrep()",
  slower = "such calls took longer on the device",
  compared = "its time is measured, to be compared with the device's", data = "the data are there",
  only = "nothing of this is done on a device", "function" = "the log density is an R function",
  cost = "")

# The line of print(), "" for a fit without a note.
engine_line <- function(note) {
  if (is.null(note)) return("")
  number <- function(x) format(signif(x, 4), big.mark = ",", scientific = FALSE)
  reason <- engine_reasons[[note$why]]
  if (note$why %in% c("above", "below", "least")) {
    reason <- do.call(sprintf, c(reason, list(number(note$size)), if (note$why != "least")
      list(number(note$limit), note$op)))
  }
  paste0("engine: ", if (note$where == "host") "host" else paste("device", note$where), " (",
         paste(c(cost_text(note), if (nzchar(reason)) reason), collapse = "; "), ")\n")
}

cost_text <- function(note) {
  if (is.null(note$host)) return(NULL)
  us <- function(x) sprintf("%.0f us", x)
  paste0("chosen by cost: about ", us(note$host), " a gradient on the host",
         if (!is.null(note$device)) paste0(", ", us(note$device), " on the device"))
}

# ---- cl_sitrep() --------------------------------------------------------------------------------

# For operations that have been above their threshold in this session: the engine and why.
choice_facts <- function() {
  if (session$engine != "auto" || current_device() < 0L) return(character())
  ops <- intersect(names(host_seconds), c(names(session$owed), names(session$refused),
                                          session$waits, sub("^[0-9]+ ", "", session$built)))
  vapply(stats::setNames(nm = ops), function(op) {
    if (!is.null(session$refused[[op]])) {
      paste("host, as kernels are refused:", session$refused[[op]])
    } else if (is_built(op)) {
      "device, whose kernels stand"
    } else if (op %in% session$waits) {
      "host, while kernels are being built"
    } else {
      sprintf("host, for %.2g s; kernels are built from %.2g s on", sum(session$owed[[op]]),
              build_begins * build_cost(op))
    }
  }, "")
}
