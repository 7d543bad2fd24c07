#!/usr/bin/env bash
# Carries out the examples of "Adding an operation" and "Adding a family" in vignettes/internals.Rmd
# in a copy of the sources: their chunks go where the text says, the package is installed, and the
# chunks with tests, and those of all operations, of covariance functions, families and of the core
# are run. It fails if an example edits more files than CONTRIBUTING.md says; NAMESPACE and man/ are
# generated.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/turn.sh
page=$PWD/vignettes/internals.Rmd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/statcl/.ci" "$work/lib"
cp -r DESCRIPTION NAMESPACE R src inst configure cleanup tests "$work/statcl/"
cp .ci/testthat.R "$work/statcl/.ci/"
find "$work/statcl/src" -name '*.o' -exec rm -f {} +
cd "$work/statcl"

# chunk NAME: the lines of a chunk of the page; there must be some.
chunk() {
  awk -v name="$1" '
    /^```/ { inside = index($0, " " name ",") > 0; next }
    inside { print; lines++ }
    END { exit lines == 0 }' "$page"
}
# before CHUNK LINE FILE: puts the chunk before the line.
before() {
  chunk "$1" > "$work/$1"
  sed -i "/$2/{
    e cat '$work/$1'
  }" "$3"
}
# edits MOST WHAT: the example that begins after the last one has edited at most so many files.
cp -r "$work/statcl" "$work/before"
edits() {
  local names
  names=$(diff -rq -x NAMESPACE "$work/before" "$work/statcl" || true)
  if [ -z "$names" ] || [ "$(wc -l <<< "$names")" -gt "$1" ]; then
    printf '%s must take 1 to %s edited files, not these:\n%s\n' "$2" "$1" "$names"
    exit 1
  fi
  rm -r "$work/before"
  cp -r "$work/statcl" "$work/before"
}
chunk softsign-row >> inst/kernels/include/elementwise.def
chunk softsign-meaning > "$work/meaning"
sed -i "/^in_base_r <- list(/r $work/meaning" tests/testthat/helper-trace.R
chunk softsign-function >> R/matrix-arith.R
edits 3 "an elementwise operation"
chunk cauchy-row > "$work/row"
sed -i "/^#define SCL_COVARIANCE_LONG/r $work/row" inst/kernels/include/covariance_functions.h
before cauchy-function '^\/\* exp(-s \/ 2) \*\/' inst/kernels/include/covariance_functions.h
chunk cauchy-constructor >> R/covariance-functions.R
chunk cauchy-meaning > "$work/meaning"
sed -i "/^formulas <- list(/r $work/meaning" tests/testthat/test-covariance.R
edits 3 "a covariance function"
chunk gumbel-row > "$work/row"
sed -i "/^density_table <- list(/r $work/row" R/density-table.R
before gumbel-help "^#' - .dordlogit" R/density-help.R
chunk gumbel-test > tests/testthat/example-density.R
edits 3 "a density"
families=inst/kernels/include/glm_families.h
chunk exponential-row > "$work/row"
sed -i "/^#define SCL_GLM_FAMILIES(FAMILY)/r $work/row" $families
chunk exponential-functions > "$work/functions"
sed -i "/^\/\* ---- the families ---/{n;r $work/functions
}" $families
chunk exponential-r > "$work/row"
sed -i "/^family_table <- named_rows(list(/r $work/row" R/family-table.R
chunk exponential-meaning > "$work/meaning"
sed -i "/^  by_r <- list(/r $work/meaning" tests/testthat/test-family.R
edits 3 "a family"
chunk commutator-row >> src/ops/operations.def
chunk commutator-file > src/ops/commutator.c
before commutator-reverse '^\/\* Of ops\/operations.def. \*\/' src/program/reverse.c
chunk commutator-function >> R/matrix-products.R
before commutator-loops '^static void .*loops\[' tests/core/operation_reference.c
before commutator-case '^    \[SCL_OPERATION_COPY_AS' tests/core/operation_reference.c
chunk commutator-test > tests/testthat/example-operation.R
edits 6 "an operation on matrices"
echo 'export(cl_commutator, cl_softsign, k_cauchy)' >> NAMESPACE
{ # all of the C code is compiled: quickly
  cat "${R_MAKEVARS_USER:-/dev/null}"
  echo "CFLAGS = -O0"
} > "$work/Makevars"
R_MAKEVARS_USER=$work/Makevars R CMD INSTALL --no-docs --no-byte-compile --no-test-load \
  --library="$work/lib" . > "$work/log" 2>&1 || {
  tail -n 20 "$work/log"
  exit 1
}
{
  echo "library(statcl, lib.loc = '$work/lib')"
  chunk softsign-test
  chunk exponential-test
  cat tests/testthat/example-*.R
} > "$work/test.R"
Rscript "$work/test.R"
OCL_ICD_VENDORS="$work/none" NOT_CRAN=true STATCL_TEST_QUICK=1 R_LIBS="$work/lib" \
  Rscript .ci/testthat.R '^operations$' '^covariance$' '^family$' '^density-(ends|gradient)$' \
  > "$work/log" || {
  cat "$work/log"
  exit 1
}
if in_turn 1 6; then
  make -s -C tests/core SANITIZE= CFLAGS=-O0 BUILD="$work/core" test SUITES="operations program" \
    > "$work/log" 2>&1 || {
    tail -n 20 "$work/log"
    exit 1
  }
fi
echo "the examples of vignettes/internals.Rmd work"
