#!/usr/bin/env bash
# All that must pass, in steps; called by ./dev check, which has installed what it needs. Each step
# has a log, build/log/NAME.log. A step whose log ends with "N passed, N failed, N skipped" adds
# these counts, any other step counts as one. The last line has the sums. Once the package is
# installed the steps run in two lanes side by side, of about the same length: the core and its
# kernels in one, the package in the other.
#
# --long runs every test with all its cases; without it the longest ones take fewer
# (STATCL_TEST_QUICK), so that the whole stays below half an hour on two idle cores.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
logs=$root/build/log
tally=$root/build/tally # a line "passed failed skipped" from each step, of either lane
export LC_ALL=C.UTF-8
case ${1:-} in
  "") export STATCL_TEST_QUICK=1 ;;
  --long) unset STATCL_TEST_QUICK ;;
  *)
    echo "check: unknown argument '$1'; there is --long" >&2
    exit 2
    ;;
esac
# Far longer than any step takes, even on a busy machine: it only ends one that hangs.
readonly patience=3000
mkdir -p "$logs" build/lib build/lib-host build/no-platform build/pocl \
  build/pocl-plain build/check
export POCL_CACHE_DIR=$root/build/pocl
: > "$tally"

# step NAME COMMAND...: prints its elapsed time and its processor time.
step() {
  local name=$1 log=$logs/$1.log cpu=$logs/$1.cpu start=$SECONDS status=0 counts p f s took
  shift
  local TIMEFORMAT='%U %S'
  { time timeout --kill-after=10 "$patience" "$@" > "$log" 2>&1 < /dev/null; } 2> "$cpu" ||
    status=$?
  took=$(awk -v wall=$((SECONDS - start)) '{ printf "%4d s (cpu %d s)", wall, $1 + $2 }' "$cpu")
  rm -f "$cpu"
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
  # At once, so that the lanes' lines do not mix.
  if [ "$f" = 0 ]; then
    printf 'ok      %-22s %s  %s\n' "$name" "$took" "${counts:-}"
  elif [ "$status" = 124 ] || [ "$status" = 137 ]; then
    printf 'STOPPED %-22s %s  no end within %d s: it hangs, or the machine is too busy\n%s\n' \
      "$name" "$took" "$patience" "$(tail -n 40 "$log" | sed 's/^/        /')"
  else
    printf 'FAILED  %-22s %s  %s\n%s\n' "$name" "$took" "${counts:-exit status $status}" \
      "$(tail -n 40 "$log" | sed 's/^/        /')"
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
step lint bash .ci/lint.sh
if have clang-format && clang-format --version | grep -q 'version 14'; then
  step format find src tests/core -name '*.[ch]' -exec clang-format --dry-run -Werror {} +
else
  skip format "clang-format 14 is not here, and other versions differ"
fi

step launch-types bash .ci/launch_types.sh

# ---- the package as users get it -------------------------------------------------------------
rm -rf build/check/* build/lib/* build/lib-host/*
step build bash -c 'cd build/check && R CMD build ../..'
tarball=$(echo build/check/statcl_*.tar.gz)
[ -f "$tarball" ] || finish
step install R CMD INSTALL --library=build/lib "$tarball"
export R_LIBS=$root/build/lib

# ---- the core without R, and its kernels -----------------------------------------------------
core_lane() {
  step core-build make -s -C tests/core
  step core-host make -s -C tests/core test
  step core-device env STATCL_TEST_DEVICE=1 make -s -C tests/core test
  # Races, uninitialised values, accesses out of bounds.
  if have oclgrind; then
    step oclgrind bash .ci/oclgrind.sh
  else
    skip oclgrind "oclgrind is not here"
  fi
}

# ---- the package on every kind of machine ----------------------------------------------------
package_lane() {
  local few=
  # No network, no clock server; whatever CRAN's machines look at beyond --as-cran. No ERROR,
  # WARNING or NOTE passes, except that of every new package. Separate folders show what
  # is left behind; other programs may write to /tmp meanwhile.
  mkdir -p build/check/home build/check/tmp
  step r-cmd-check env _R_CHECK_CRAN_INCOMING_REMOTE_=false \
    _R_CHECK_SYSTEM_CLOCK_=0 _R_CHECK_THINGS_IN_TEMP_DIR_=true _R_CHECK_THINGS_IN_OTHER_DIRS_=true \
    _R_CHECK_THINGS_IN_OTHER_DIRS_EXCLUDE_='^/tmp/' HOME="$root/build/check/home" \
    TMPDIR="$root/build/check/tmp" \
    bash -c "cd build/check && R CMD check --as-cran --no-manual $(basename "$tarball") &&
      bash ../../.ci/check_notes.sh statcl.Rcheck/00check.log"
  if Rscript -e 'loadNamespace("roxygen2")' > /dev/null 2>&1; then
    step doc bash .ci/doc_drift.sh
  else
    skip doc "roxygen2 is not here: man/ and NAMESPACE are not compared with R/"
  fi

  export NOT_CRAN=true
  step tests-device env STATCL_TEST_DEVICE=required Rscript .ci/testthat.R
  # What runs on the host has just run there, and without a platform or OpenCL it is nearly the
  # same: all of it once before an issue is closed.
  if [ -n "${STATCL_TEST_QUICK:-}" ]; then few='^(session|matrix|lazy|cholesky|glm|gp-fit)$'; fi
  step tests-no-platform env OCL_ICD_VENDORS="$root/build/no-platform" \
    Rscript .ci/testthat.R ${few:+"$few"}
  step install-host-only env STATCL_OPENCL=no R CMD INSTALL --library=build/lib-host "$tarball"
  step tests-host-only env R_LIBS="$root/build/lib-host" Rscript .ci/testthat.R ${few:+"$few"}
  # The kernels made for GPUs, on the CPU device, where they are not optimised
  # (engine/cl/runtime/program.c; the simulator runs the same kernels without a report). Here, as
  # the other lane is the longer one; it has built the core long before.
  step core-gpu-kernels env STATCL_GPU_KERNELS=1 STATCL_TEST_DEVICE=1 \
    POCL_CACHE_DIR="$root/build/pocl-plain" \
    make -s -C tests/core test SUITES="arith constructors gemm triangular cholesky covariance glm"
  # The kernels of matrix instructions, emulated: all of them, by each form of the instruction.
  local mma="mma_gemm mma_chol mma_batch mma_glm mma_launched"
  step core-mma-emulated env STATCL_MMA_EMULATED=1 STATCL_TEST_DEVICE=1 \
    POCL_CACHE_DIR="$root/build/pocl-plain" make -s -C tests/core test SUITES="$mma batch_product"
  step core-mma-8-emulated env STATCL_MMA_EMULATED=1 STATCL_VARIANT=m8n8k4 STATCL_TEST_DEVICE=1 \
    POCL_CACHE_DIR="$root/build/pocl-plain" make -s -C tests/core test SUITES="$mma"
  step worked-example bash .ci/worked_example.sh
  step mma-faults env POCL_CACHE_DIR="$root/build/pocl-plain" bash .ci/mma_faults.sh
  step adjoint-faults bash .ci/adjoint_faults.sh
  step demo \
    Rscript -e 'source(system.file("examples", "demo.R", package = "statcl"))' build/demo
}

core_lane &
package_lane & # in a shell of its own, too, so that the times of its steps are its own
wait
finish
