# Builds the site of the package with pkgdown, below build/site and without a network; run by
# ./dev site in the root of the repository, with statcl installed. site_links.R checks its links.
options(pkgdown.internet = FALSE)
site <- file.path("build", "site")
unlink(site, recursive = TRUE)
pkg <- pkgdown::as_pkgdown(".")
pkgdown::init_site(pkg)
pkgdown::build_home(pkg, preview = FALSE)
pkgdown::build_reference(pkg, preview = FALSE, devel = FALSE)
pkgdown::build_articles(pkg, preview = FALSE)
pkgdown::build_news(pkg, preview = FALSE)

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

# Debian's template of pkgdown also loads MathJax from the machine on which the site is built.
for (page in list.files(site, "\\.html$", recursive = TRUE, full.names = TRUE)) {
  lines <- readLines(page, encoding = "UTF-8")
  lines <- gsub('<script src="file://[^>]*></script>', "", lines)
  writeLines(lines, page, useBytes = TRUE)
}
# The README's links to files of the repository that have other names here.
file.copy(file.path("bench", "figures"), file.path(site, "bench"), recursive = TRUE)
home <- file.path(site, "index.html")
lines <- readLines(home, encoding = "UTF-8")
lines <- sub('href="NEWS.html"', 'href="news/index.html"', lines, fixed = TRUE)
lines <- gsub('href="vignettes/([a-z-]*)\\.Rmd"', 'href="articles/\\1.html"', lines)
writeLines(lines, home, useBytes = TRUE)
