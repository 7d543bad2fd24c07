#!/usr/bin/env bash
# All that must pass, in steps; called by ./dev check, which has installed what it needs. Each step
# has a time limit and a log, build/log/NAME.log. A step whose log ends with "N passed, N failed,
# N skipped" adds these counts, any other step counts as one. The last line has the sums. Once the
# package is installed the steps run in two lanes side by side, of about the same length: the core
# and its kernels in one, the package in the other.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
logs=$root/build/log
tally=$root/build/tally # a line "passed failed skipped" from each step, of either lane
export LC_ALL=C.UTF-8
mkdir -p "$logs" build/lib build/lib-host build/no-platform build/pocl \
  build/pocl-plain build/check
export POCL_CACHE_DIR=$root/build/pocl
: > "$tally"

# step NAME SECONDS COMMAND...
step() {
  local name=$1 limit=$2 log=$logs/$1.log start=$SECONDS status=0 counts p f s
  shift 2
  timeout --kill-after=10 "$limit" "$@" > "$log" 2>&1 < /dev/null || status=$?
  counts=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
  if [ -n "$counts" ]; then
    read -r p _ f _ s _ <<< "$counts"
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
  elif [ "$status" = 0 ]; then
    p=1 f=0 s=0
  else
    p=0 f=1 s=0
  fi
  echo "$p $f $s" >> "$tally"
  # In one piece, so that the lanes' lines do not mix.
  if [ "$f" = 0 ]; then
    printf 'ok      %-22s %4d s  %s\n' "$name" $((SECONDS - start)) "${counts:-}"
  else
    [ "$status" != 124 ] || counts="stopped after $limit s"
    printf 'FAILED  %-22s %4d s  %s\n%s\n' "$name" $((SECONDS - start)) \
      "${counts:-exit status $status}" "$(tail -n 40 "$log" | sed 's/^/        /')"
  fi
}

# skip NAME REASON
skip() {
  echo "0 0 1" >> "$tally"
  printf 'skipped %-22s %s\n' "$1" "$2"
}

# Prints the closing line and ends with its verdict.
finish() {
  awk '{ p += $1; f += $2; s += $3 } END {
    printf "%d passed, %d failed, %d skipped\n", p, f, s
    exit f > 0
  }' "$tally"
  exit
}

have() { command -v "$1" > /dev/null 2>&1; }

# ---- the text --------------------------------------------------------------------------------
step lint 60 bash .ci/lint.sh
if have clang-format && clang-format --version | grep -q 'version 14'; then
  step format 60 clang-format --dry-run -Werror src/*.[ch] tests/core/*.[ch]
else
  skip format "clang-format 14 is not here, and other versions differ"
fi

# ---- the package as users get it -------------------------------------------------------------
rm -rf build/check/* build/lib/* build/lib-host/*
step build 300 bash -c 'cd build/check && R CMD build ../..'
tarball=$(echo build/check/statcl_*.tar.gz)
[ -f "$tarball" ] || finish
step install 300 R CMD INSTALL --library=build/lib "$tarball"
export R_LIBS=$root/build/lib

# ---- the core without R, and its kernels -----------------------------------------------------
core_lane() {
  step core-build 300 make -s -C tests/core
  step core-host 300 make -s -C tests/core test
  step core-device 1200 env STATCL_TEST_DEVICE=1 make -s -C tests/core test
  # The kernels made for GPUs, on the CPU device, where they are not optimised
  # (scl_cl_program.c; the simulator below runs the same kernels without a report).
  step core-gpu-kernels 900 env STATCL_GPU_KERNELS=1 STATCL_TEST_DEVICE=1 \
    POCL_CACHE_DIR="$root/build/pocl-plain" \
    make -s -C tests/core test SUITES="arith structure gemm triangular cholesky covariance glm"

  # Races, uninitialised values, accesses out of bounds.
  if have oclgrind; then
    step oclgrind 1200 bash .ci/oclgrind.sh
  else
    skip oclgrind "oclgrind is not here"
  fi
}

# ---- the package on every kind of machine ----------------------------------------------------
package_lane() {
  # No network, no clock server; whatever CRAN's machines look at beyond --as-cran. No ERROR,
  # WARNING or NOTE passes, less the one that greets every new package. Folders of its own show what
  # is left behind; other programs may write to /tmp meanwhile.
  mkdir -p build/check/home build/check/tmp
  step r-cmd-check 1200 env -u POCL_CACHE_DIR _R_CHECK_CRAN_INCOMING_REMOTE_=false \
    _R_CHECK_SYSTEM_CLOCK_=0 _R_CHECK_THINGS_IN_TEMP_DIR_=true _R_CHECK_THINGS_IN_OTHER_DIRS_=true \
    _R_CHECK_THINGS_IN_OTHER_DIRS_EXCLUDE_='^/tmp/' HOME="$root/build/check/home" \
    TMPDIR="$root/build/check/tmp" \
    bash -c "cd build/check && R CMD check --as-cran --no-manual $(basename "$tarball") &&
      bash ../../.ci/check_notes.sh statcl.Rcheck/00check.log"
  if Rscript -e 'loadNamespace("roxygen2")' > /dev/null 2>&1; then
    step doc 300 bash .ci/doc_drift.sh
  else
    skip doc "roxygen2 is not here: man/ and NAMESPACE are not compared with R/"
  fi

  export NOT_CRAN=true
  step tests-device 1200 env STATCL_TEST_DEVICE=required Rscript .ci/testthat.R
  step tests-no-platform 900 env OCL_ICD_VENDORS="$root/build/no-platform" Rscript .ci/testthat.R
  step install-host-only 300 env STATCL_OPENCL=no R CMD INSTALL --library=build/lib-host "$tarball"
  step tests-host-only 900 env R_LIBS="$root/build/lib-host" Rscript .ci/testthat.R
  step demo 300 \
    Rscript -e 'source(system.file("examples", "demo.R", package = "statcl"))' build/demo
}

core_lane &
package_lane
wait
finish
