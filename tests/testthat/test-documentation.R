# The list of ?statcl, of which the web site is made, is complete.

# The targets of the links below one node of a help page, in order.
link_targets <- function(node) {
  if (identical(attr(node, "Rd_tag"), "\\link")) {
    option <- attr(node, "Rd_option")
    if (!is.null(option)) return(sub("^=", "", as.character(option)))
    return(paste(unlist(node), collapse = ""))
  }
  if (is.list(node)) unlist(lapply(node, link_targets)) else character()
}

tags_of <- function(page) vapply(page, function(x) attr(x, "Rd_tag"), "")

# The text of all nodes of a page with this tag.
text_of <- function(page, tag) {
  vapply(page[tags_of(page) == tag], function(x) paste(unlist(x), collapse = ""), "")
}

# Help pages, except the package's own and internal ones: list(name, aliases).
documented <- function(pages) {
  internal <- vapply(pages, function(page) "internal" %in% text_of(page, "\\keyword"), NA)
  lapply(pages[!internal], function(page) c(text_of(page, "\\name"), text_of(page, "\\alias")))
}

test_that("?statcl lists every help page, and nothing twice", {
  pages <- tools::Rd_db("statcl")
  page <- pages[["statcl-package.Rd"]]
  sections <- page[tags_of(page) == "\\section"]
  # The first part of a section is its title.
  listed <- unlist(lapply(sections, function(x) link_targets(x[[2L]])))
  listed <- listed[listed != "optim"] # base R's
  expect_identical(listed[duplicated(listed)], character())
  found <- documented(pages)
  expect_identical(setdiff(listed, unlist(found)), character())
  for (names in found) expect(any(names %in% listed), paste(names[1L], "is not listed"))
})

test_that("the web site has every vignette", {
  file <- test_path("..", "..", "_pkgdown.yml")
  skip_if_not(file.exists(file), "sources of the site at hand")
  lines <- readLines(file)
  listed <- sub("^  - ", "", grep("^  - ", lines, value = TRUE))
  vignettes <- sub("[.]Rmd$", "", list.files(test_path("..", "..", "vignettes"), "[.]Rmd$"))
  expect_identical(sort(listed), sort(vignettes))
})
