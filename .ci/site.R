# Builds the site of the package with pkgdown, below build/site and without a network; run by
# ./dev site in the root of the repository, with statcl installed. site_links.R checks its links.
options(pkgdown.internet = FALSE)
site <- file.path("build", "site")
unlink(site, recursive = TRUE)

# The reference: the topics of ?statcl (R/statcl-package.R), in its sections.
targets <- function(node) {
  if (!identical(attr(node, "Rd_tag"), "\\link")) {
    return(if (is.list(node)) unlist(lapply(node, targets)))
  }
  option <- attr(node, "Rd_option")
  if (is.null(option)) paste(unlist(node), collapse = "") else sub("^=", "", option)
}
page <- tools::parse_Rd(file.path("man", "statcl-package.Rd"))
sections <- Filter(function(x) identical(attr(x, "Rd_tag"), "\\section"), page)
reference <- lapply(sections, function(x) { # its first part is the title
  list(title = paste(unlist(x[[1L]]), collapse = ""),
       contents = setdiff(targets(x[[2L]]), "optim")) # base R's
})
pkg <- pkgdown::as_pkgdown(".", override = list(reference = reference))
pkgdown::init_site(pkg)
pkgdown::build_home(pkg, preview = FALSE)
pkgdown::build_reference(pkg, preview = FALSE, devel = FALSE)
pkgdown::build_articles(pkg, preview = FALSE)
pkgdown::build_news(pkg, preview = FALSE)
pkgdown::build_search(pkg)

# ---- pages that the README links to and pkgdown does not make ------------------------------------
body_of <- function(source) {
  html <- system2("pandoc", c("--from=gfm", "--to=html", shQuote(source)), stdout = TRUE)
  html <- html[!grepl("^<h1", html)] # the page's title
  gsub('href="([^":]*)\\.md([#"])', 'href="\\1.html\\2', paste(html, collapse = "\n"))
}
dir.create(file.path(site, "bench"))
for (source in file.path("bench", c("README.md", "NOTES.md", "results.md", "results-cpu.md"))) {
  title <- sub("^#+ *", "", grep("^# ", readLines(source), value = TRUE)[[1L]])
  pkgdown::render_page(pkg, "title-body", list(pagetitle = title, body = body_of(source)),
                       sub("\\.md$", ".html", source))
}

# ---- no page asks another host -------------------------------------------------------------------
# pkgdown's template loads libraries from other hosts; site.js needs none. MathJax is Debian's.
mathjax <- file.path(site, "deps", "mathjax")
for (part in c("MathJax.js", "config/TeX-AMS_CHTML.js", "extensions", "jax/element",
               "jax/input/TeX", "jax/output/CommonHTML", "fonts/HTML-CSS/TeX/woff")) {
  to <- dirname(file.path(mathjax, part))
  dir.create(to, recursive = TRUE, showWarnings = FALSE)
  file.copy(file.path("/usr/share/javascript/mathjax", part), to, recursive = TRUE)
}
for (page in list.files(site, "\\.html$", recursive = TRUE, full.names = TRUE)) {
  lines <- readLines(page, encoding = "UTF-8")
  lines <- gsub('<script src="(https|file)://[^>]*></script>', "", lines)
  lines <- gsub('<link rel="stylesheet" href="https://[^>]*>', "", lines)
  if (any(grepl("\\\\[(\\[]", lines))) {
    lines <- sub('(<script src="[./]*)pkgdown.js("></script>)',
                 "\\1pkgdown.js\\2\\1deps/mathjax/MathJax.js?config=TeX-AMS_CHTML\\2", lines)
  }
  writeLines(lines, page, useBytes = TRUE)
}
file.copy(file.path(".ci", "site.js"), file.path(site, "pkgdown.js"), overwrite = TRUE)
index <- readLines(file.path(site, "search.json"), encoding = "UTF-8")
writeLines(c("window.searchIndex =", index), file.path(site, "search.js"), useBytes = TRUE)

# The README's links to files of the repository that have other names here.
file.copy(file.path("bench", c("figures", "laptop.R")), file.path(site, "bench"), recursive = TRUE)
home <- file.path(site, "index.html")
lines <- readLines(home, encoding = "UTF-8")
lines <- sub('href="NEWS.html"', 'href="news/index.html"', lines, fixed = TRUE)
lines <- gsub('href="vignettes/([a-z-]*)\\.Rmd"', 'href="articles/\\1.html"', lines)
writeLines(lines, home, useBytes = TRUE)
