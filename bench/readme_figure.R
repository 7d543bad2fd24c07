# Draws the README's figure: Rscript bench/readme_figure.R (with statcl installed).
library(statcl)
source(system.file("examples", "gp.R", package = "statcl"))
dir.create("man/figures", showWarnings = FALSE, recursive = TRUE)
png("man/figures/co2.png", width = 800, height = 340, res = 90, type = "cairo")
plot_co2(fit_co2())
invisible(dev.off())
