#!/usr/bin/env bash
# Each rule of .ci/lint.sh finds a violation of it, planted in a copy of the sources. All are
# planted at once; a rule that does not complain, or not about the planted file, is a failure.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z 2> /dev/null | xargs -0 cp --parents -t "$copy" 2> /dev/null || cp -r . "$copy"
cd "$copy"
git init -q .
passed=0 failed=0
expected=()

# plant RULE FILE TEXT: appends the text, and expects the rule to name the file.
plant() {
  printf '%b\n' "$3" >> "$2"
  expected+=("$1|$2")
}
long_function=$(printf 'x++;\\n%.0s' {1..90})
plant "R's headers only" src/program/tape.c '#include <Rinternals.h>'
plant "no headers of OpenCL" src/engine/cl/runtime/queue.c '#include <CL/cl.h>'
plant "the headers of engine/cl/ are private" src/ops/lu.c '#include "engine/cl/runtime/cl.h"'
plant "the headers of engine/host/" src/ops/lu.c '#include "engine/host/host.h"'
plant "the layers of CONTRIBUTING.md" src/base/status.c '#include "ops/table.h"'
plant "the core asks for traits" src/program/fuse.c 'int t = scl_context_is_host(c);'
plant "no OpenCL types" src/program/fuse.c 'cl_mem m;'
plant "kernels are launched by" src/engine/cl/runtime/queue.c 'clEnqueueNDRangeKernel(q);'
plant "no arguments of unknown type" src/engine/cl/runtime/queue.c 'va_list a;'
plant "constants of kernels are included" src/program/fuse.c \
  "$(grep -rhoE '^#define [A-Z]+_[A-Z_]+ +[0-9]+' inst/kernels | head -n 1)"
plant "no printing" src/program/tape.c 'printf("x"); abort();'
plant "only r/interrupt.c jumps" src/sample/chain.c 'longjmp(b, 1);'
plant "no output streams" src/r/glue.c 'fprintf(stderr, "x");'
plant "no unbounded string functions" src/r/glue.c 'strcpy(a, b);'
plant "only src/r/throw.c raises" src/r/glue.c 'Rf_error("x");'
plant "no build options that change" src/engine/cl/runtime/queue.c '"-cl-fast-relaxed-math"'
plant "portable Makevars" src/Makevars.in 'PKG_CFLAGS = -O3'
plant "no atomics in kernels" inst/kernels/portable/cholesky.cl 'atomic_add(x, 1);'
plant "plain ASCII" README.md '\xc3\xa9'
plant "no tabs" R/zzz.R '\tx'
plant "no white space at line ends" README.md 'x '
plant "no conflict markers" README.md '<<<<<<< ours'
plant "no paths of one machine" README.md "/home""/x"
plant "at most 100 columns" R/zzz.R "# $(printf 'x%.0s' {1..100})"
plant "files of at most 500 lines" src/ops/lu.c "$(printf '/* */\\n%.0s' {1..500})"
plant "C functions of at most 60" src/sample/chain.c "static void f(void) {\n$long_function}"
plant "kernel functions of at most 80" inst/kernels/portable/lu.cl \
  "__kernel void other(int x) {\n$long_function}"
plant "a kernel's name starts" inst/kernels/portable/lu.cl ''
plant "R syntax of R 4.0" R/zzz.R 'x |> f()'
plant "R/ attaches nothing" R/zzz.R 'library(stats)'
plant "names of families only" R/cv.R 'if (x$family == "poisson_log") 1'
plant "names of families only" R/mixed-fit.R 'switch(fit$family, 1)'
plant "what is not in R's API" src/r/finalizer.c 'SEXP lost(SEXP x) { return ATTRIB(x); }'
plant "bash syntax" dev 'fi'
plant "sh syntax" cleanup 'fi'
plant "configure is plain sh" configure '[[ a == b ]]'
plant "R's rooms" R/base-conditions.R 'climbs <- function() cl_glm()'
plant "R's rooms" R/base-seed.R 'lost <- function(x) defined_nowhere(x)'
named="names that prose mentions exist"
plant "$named" README.md '`cl_nowhere()`'
plant "$named" NEWS.md '`cl_sample(refreshes = 1)`'
plant "$named" CONTRIBUTING.md '`R/no-such.R`'
plant "$named" vignettes/glm.Rmd 'STATCL_NOTHING'
plant "$named" bench/README.md '`./dev nothing`'
plant "$named" vignettes/internals.Rmd '`cl_likelihood()` (`R/base-seed.R`)'
plant "$named" R/cv.R '# By gone_for_good().'
plant "$named" src/ops/lu.c '/* See `no_such_name`. */'
plant "$named" R/gp.R "# options(statcl.nothing): \`statcl.nothing\`"
git add -A

found=$(bash .ci/lint.sh || true)
for pair in "${expected[@]}"; do
  text=${pair%%|*} file=${pair#*|}
  lines=$(awk -v text="not kept: $text" '
    /^not kept: / { on = index($0, text) == 1 } on' <<< "$found")
  if grep -qF "$file" <<< "$lines"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'not found by lint: %s (%s)\n' "$text" "$file"
  fi
done
# a rule without a fault here
while read -r text; do
  known=no
  for pair in "${expected[@]}"; do
    if [ "${text#"${pair%%|*}"}" != "$text" ]; then known=yes; fi
  done
  if [ $known = no ]; then
    failed=$((failed + 1))
    printf 'no fault is planted for: %s\n' "$text"
  fi
done < <(grep -oP '^(?!#).*\| *rule "\K[^"]+|^ *rule "\K[^"]+' .ci/lint.sh)
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
