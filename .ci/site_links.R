# Checks that every internal link of the site below build/site leads to a file, and to an anchor if
# it names one, that no page loads anything from another host, and that the search has an index.
# Links to other sites are not followed.
site <- file.path("build", "site")
pages <- list.files(site, "\\.html$", recursive = TRUE)

parsed <- lapply(file.path(site, pages), xml2::read_html, encoding = "UTF-8")
attributes_of <- function(name) {
  lapply(parsed, function(x) xml2::xml_text(xml2::xml_find_all(x, paste0("//@", name))))
}
anchors <- Map(c, attributes_of("id"), attributes_of("name"))
names(anchors) <- normalizePath(file.path(site, pages))

# What is wrong with a link on a page, or NULL.
check_link <- function(link, page) {
  target <- sub("[?#].*$", "", link)
  anchor <- utils::URLdecode(sub("^[^#]*#?", "", link))
  path <- if (target == "") page else file.path(dirname(page), utils::URLdecode(target))
  if (dir.exists(path)) path <- file.path(path, "index.html")
  if (!file.exists(path)) return("no such file")
  known <- anchors[[normalizePath(path)]]
  if (anchor != "" && !is.null(known) && !anchor %in% known) return("no such anchor")
  NULL
}

links <- Map(c, attributes_of("href"), attributes_of("src"))
broken <- 0L
checked <- 0L
for (i in seq_along(pages)) {
  if (is.na(xml2::xml_find_first(parsed[[i]], "//head/title"))) {
    broken <- broken + 1L
    cat(sprintf("%s: no title\n", pages[[i]]))
  }
  loaded <- xml2::xml_text(xml2::xml_find_all(parsed[[i]], "//@src | //link/@href"))
  for (link in grep("^((https?|file):|//)", loaded, value = TRUE)) {
    broken <- broken + 1L
    cat(sprintf("%s: loads %s\n", pages[[i]], link))
  }
  internal <- grep("^([a-z]+:|//)|^#?$", unique(links[[i]]), value = TRUE, invert = TRUE)
  for (link in internal) {
    problem <- check_link(link, file.path(site, pages[[i]]))
    checked <- checked + 1L
    if (is.null(problem)) next
    broken <- broken + 1L
    cat(sprintf("%s: link to %s: %s\n", pages[[i]], link, problem))
  }
}
entries <- jsonlite::read_json(file.path(site, "search.json"))
found <- unlist(lapply(entries, `[[`, "path"))
if (!all(c("/reference/cl_glm.html", "/articles/glm.html") %in% found)) {
  broken <- broken + 1L
  cat("search.json: no entries of cl_glm() or its article\n")
}
cat(sprintf("%d pages, %d internal links: %d passed, %d failed, 0 skipped\n", length(pages),
            checked, checked - broken, broken))
if (length(pages) < 50L || broken > 0L) quit(status = 1L)
