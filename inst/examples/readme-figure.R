# Draws the figure of README.md; run in the root of the repository, with statcl installed:
#   Rscript inst/examples/readme-figure.R
library(statcl)
source(system.file("examples", "gp.R", package = "statcl"))
dir.create("man/figures", showWarnings = FALSE, recursive = TRUE)
png("man/figures/co2.png", width = 800, height = 340, res = 90, type = "cairo")
plot_co2(fit_co2())
invisible(dev.off())
