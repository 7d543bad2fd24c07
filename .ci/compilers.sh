#!/usr/bin/env bash
# All C by the compilers of other machines: mingw-w64 (Windows), clang, and a cross compiler for
# 64-bit ARM; no error, no warning. They take turns (turn.sh), but for Windows. What configure
# writes with tools like macOS's. With --run the core tests are also linked, with plain loops for
# BLAS (tests/core/plain_blas.h), and run: those for Windows by Wine, those for ARM by qemu. R's
# headers are those of this machine; what differs elsewhere in them does not matter here. Ends with
# counts.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/turn.sh
passed=0 failed=0 skipped=0
include=$(Rscript -e 'cat(R.home("include"))')

# here NAME PROGRAM: whether the program is here; else what needs it counts as skipped.
here() {
  command -v "$2" > /dev/null && return
  skipped=$((skipped + 1))
  echo "skipped: $1: $2 is not here"
  return 1
}

count() {
  if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# compiles CC FLAG...
compiles() {
  here "$1" "$1" || return
  while read -r file; do
    "$@" -std=gnu11 -Wall -Werror -Isrc -Iinst -I"$include" -DSCL_PLAIN_BLAS -fsyntax-only "$file"
    count $?
  done < <(find src tests/core -name '*.c')
}

# configure with a linker that, as Apple's, knows none of GNU's options: it sets no flags.
configures() {
  local work
  work=$(mktemp -d)
  mkdir -p "$work/r/bin" "$work/inst"
  cp -r configure src "$work"
  cp -r inst/kernels "$work/inst"
  printf '#!/bin/sh\ncase "$*" in *-Wl,--*) exit 1 ;; esac\nexec cc "$@"\n' \
    > "$work/r/bin/cc-apple"
  printf '#!/bin/sh\ncase $3 in CC) echo "%s -std=gnu11" ;; esac\n' "$work/r/bin/cc-apple" \
    > "$work/r/bin/R"
  chmod +x "$work/r/bin/cc-apple" "$work/r/bin/R"
  (cd "$work" && R_HOME=$work/r STATCL_MAKEVARS=Makevars.apple ./configure) &&
    grep -qxF 'PKG_LIBS = $(LAPACK_LIBS) $(BLAS_LIBS) $(FLIBS)' "$work/src/Makevars.apple"
  count $?
  rm -rf "$work"
}

# runs NAME CC RUNNER LIBRARIES SUITES: suites of the core on the host; all if none is named. GCC
# fails on vectors for Windows without optimisation.
readonly light="context matrix transfer queue primitives memory gemm arith expr expr_programs
  operations stan stan_faults tape program_faults sparse scan sample_image sample_groups
  sample_walk user_kernel constructors sample glm least_squares"
runs() {
  here "$1" "$2" && here "$1" "$3" || return
  export WINEDEBUG=-all WINEPREFIX=$PWD/build/wine STATCL_TEST_QUICK=1
  make -s -C tests/core CC="$2" BUILD="../../build/core-$1" SANITIZE= DEFINES= WRAP= \
    CPPFLAGS=-DSCL_PLAIN_BLAS CFLAGS="-O1 -D__USE_MINGW_ANSI_STDIO=1" BLAS_LIBS= LIBS="$4" || {
    count 1
    return
  }
  local program
  program=$(find "$PWD/build/core-$1" -maxdepth 1 -name 'core-tests*' | head -n 1)
  # shellcheck disable=SC2086 # several words
  (cd tests/core && "$3" "$program" $5)
  count $?
}

# printf() is UCRT's, as R's since 4.2
compiles x86_64-w64-mingw32-gcc-posix -D_UCRT -D__USE_MINGW_ANSI_STDIO=1
if in_turn 0 2; then compiles aarch64-linux-gnu-gcc; fi
if in_turn 1 2; then compiles "$(command -v clang-14 || echo clang)" -Wpedantic; fi
configures
if [ "${1:-}" = --run ]; then
  runs windows x86_64-w64-mingw32-gcc-posix wine "-lm -lpthread -static" ""
  # Under qemu those that take seconds there.
  runs arm aarch64-linux-gnu-gcc qemu-aarch64-static "-lm -lpthread -ldl -static" "$light"
fi

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
