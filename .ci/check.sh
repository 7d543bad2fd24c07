#!/usr/bin/env bash
# All that must pass, in steps; called by ./dev check, which has installed what it needs. Each step
# has a log, build/log/NAME.log. A step whose log ends with "N passed, N failed, N skipped" adds
# these counts, any other step counts as one. The last line has the sums. Once the package is
# installed two or more workers take the steps from one list, the longest first.
#
# --long runs every test with all its cases; without it the longest ones take fewer
# (STATCL_TEST_QUICK), and tests on a device, long tests and planted faults take turns by the day of
# the commit, so that the whole stays below a quarter of an hour on two idle cores, and the same
# commit always has the same check. STATCL_TEST_TURN, the number of a day since 1970, has the turn
# of that day.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/turn.sh
root=$PWD
logs=$root/build/log
tally=$root/build/tally # a line "passed failed skipped" from each step
waiting=$root/build/waiting # a line for each step that no worker has taken yet
times=$root/build/times # a line "NAME SECONDS PROCESSOR-SECONDS" from each step
export LC_ALL=C.UTF-8
few= # the tests of steps that run what another step runs too, as a regular expression; all if empty
case ${1:-} in
  "")
    export STATCL_TEST_QUICK=1 STATCL_TEST_TURN=${STATCL_TEST_TURN:-$(commit_day)}
    export OPENBLAS_NUM_THREADS=1 # the workers use the cores, threads that wait would take time
    few='^(session|matrix|cholesky|glm)$'
    echo "the turn of day $STATCL_TEST_TURN (STATCL_TEST_TURN)"
    ;;
  --long) unset STATCL_TEST_QUICK STATCL_TEST_TURN ;;
  *)
    echo "check: unknown argument '$1'; there is --long" >&2
    exit 2
    ;;
esac
mkdir -p "$logs" build/lib build/no-platform build/pocl \
  build/pocl-plain build/check
export POCL_CACHE_DIR=$root/build/pocl
: > "$tally"
: > "$times"
# Several steps install the package; with a compiler's cache they compile once. Nobody debugs these.
printf 'CFLAGS = %s\n' "$(R CMD config CFLAGS | sed -E 's/(^| )-g( |$)/ /')" > build/Makevars
export R_MAKEVARS_USER=$root/build/Makevars
if command -v ccache > /dev/null 2>&1; then
  printf 'CC = ccache %s\n' "$(R CMD config CC)" >> build/Makevars
  export CCACHE_DIR=$root/build/ccache CCACHE_NOHASHDIR=1
fi

# step NAME COMMAND...
step() {
  local name=$1 log=$logs/$1.log cpu=$logs/$1.cpu status=0 counts p f s took
  shift
  local TIMEFORMAT='%R %U %S'
  { time bash .ci/watched.sh "$log" "$@"; } 2> "$cpu" || status=$?
  took=$(awk '{ printf "%.0f %.0f", $1, $2 + $3 }' "$cpu")
  rm -f "$cpu"
  echo "$name $took" >> "$times"
  took="${took/ / s (cpu } s)"
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
  # At once, so that the workers' lines do not mix.
  if [ "$f" = 0 ]; then
    printf 'ok      %-22s %s  %s\n' "$name" "$took" "${counts:-}"
  elif [ "$status" = 124 ]; then
    printf 'STOPPED %-22s %s  it hangs\n%s\n' "$name" "$took" \
      "$(tail -n 40 "$log" | sed 's/^/        /')"
  else
    # What failed comes first, since the end of a long log need not have it.
    printf 'FAILED  %-22s %s  %s\n%s\n' "$name" "$took" "${counts:-exit status $status}" \
      "$( { grep -aE -A 3 '^FAILED|passed, [1-9][0-9]* failed, +[0-9.]+ s' "$log" | head -n 30
            sed -n '/^[^a-z]* Failed [^a-z]*$/,/^[^a-z]* DONE [^a-z]*$/p' "$log" | head -n 80
            tail -n 30 "$log"; } | sed 's/^/        /')"
  fi
}

# skip NAME REASON
skip() {
  echo "0 0 1" >> "$tally"
  printf 'skipped %-22s %s\n' "$1" "$2"
}

# Prints what the steps took and the closing line, and ends with its verdict.
finish() {
  printf '\n%-22s %9s %11s\n' step "clock, s" "processor, s"
  sort -k 3nr "$times" | awk -v all="$SECONDS" '
    { printf "%-22s %9d %11d\n", $1, $2, $3; cpu += $3 }
    END { printf "%-22s %9d %11d\n\n", "all", all, cpu }'
  awk '{ p += $1; f += $2; s += $3 } END {
    printf "%d passed, %d failed, %d skipped\n", p, f, s
    exit f > 0
  }' "$tally"
  exit
}

have() { command -v "$1" > /dev/null 2>&1; }

# Mesa's platforms are seen by the step `implementations` only.
if [ -z "${OCL_ICD_VENDORS:-}" ] && [ -e /etc/OpenCL/vendors/mesa.icd ]; then
  rm -rf build/vendors
  mkdir build/vendors
  cp /etc/OpenCL/vendors/*.icd build/vendors
  rm -f build/vendors/{mesa,rusticl}.icd
  export OCL_ICD_VENDORS=$root/build/vendors
fi

# ---- the text --------------------------------------------------------------------------------
step lint bash .ci/lint.sh
step lint-faults bash .ci/lint_faults.sh
if have clang-format && clang-format --version | grep -q 'version 14'; then
  step format find src tests/core -name '*.[ch]' -exec clang-format --dry-run -Werror {} +
else
  skip format "clang-format 14 is not here, and other versions differ"
fi

step launch-types bash .ci/launch_types.sh
step opencl-headers bash .ci/opencl_headers.sh
step compilers bash .ci/compilers.sh

# ---- the package as users get it -------------------------------------------------------------
rm -rf build/check/* build/lib/*
step core-build make -s -C tests/core & # while the package is checked
# The vignettes need no package that is byte-compiled.
step build env R_COMPILE_PKGS=0 bash -c 'cd build/check && R CMD build ../..'
tarball=$(echo build/check/statcl_*.tar.gz)
if [ ! -f "$tarball" ]; then wait; finish; fi
# R CMD check reads this log, and the symbols of the objects.
export _R_SHLIB_BUILD_OBJECTS_SYMBOL_TABLES_=TRUE
step install R CMD INSTALL --library=build/lib "$tarball"
export R_LIBS=$root/build/lib
wait

# ---- the steps that workers share ----------------------------------------------------------------
# A step is a function here; the list below has them by length, the longest first, so that the
# workers end at about the same time.

core_device() {
  step core-device env STATCL_TEST_DEVICE=1 make -s -C tests/core test
}

# The core tests under Wine and qemu.
core_elsewhere() {
  step core-elsewhere bash .ci/compilers.sh --run
}

core_host() {
  step core-host make -s -C tests/core test
}

# Races, uninitialised values, accesses out of bounds.
simulator() {
  if have oclgrind; then
    step oclgrind bash .ci/oclgrind.sh
  else
    skip oclgrind "oclgrind is not here"
  fi
}

# Another day's turn, so that no day has a suite twice.
later() { [ -z "${STATCL_TEST_TURN:-}" ] || echo $((STATCL_TEST_TURN + $1)); }

# The kernels made for GPUs, on the CPU device, where they are not optimised
# (engine/cl/runtime/program.c; the simulator runs the same kernels without a report).
core_gpu_kernels() {
  step core-gpu-kernels env STATCL_TEST_TURN="$(later 2)" STATCL_GPU_KERNELS=1 \
    STATCL_TEST_DEVICE=1 POCL_CACHE_DIR="$root/build/pocl-plain" \
    make -s -C tests/core test \
    SUITES="arith constructors gemm triangular cholesky covariance glm program_pass"
}

# The kernels of matrix instructions, emulated: all of them, by each form of the instruction.
readonly mma="integers mma_gemm mma_gram mma_chol mma_batch mma_glm mma_walk glm_walk mma_launched"
core_mma() {
  step core-mma-emulated env STATCL_MMA_EMULATED=1 STATCL_TEST_DEVICE=1 \
    POCL_CACHE_DIR="$root/build/pocl-plain" make -s -C tests/core test \
    SUITES="$mma batch_product beside"
}

core_mma_8() {
  step core-mma-8-emulated env STATCL_TEST_TURN="$(later 1)" STATCL_MMA_EMULATED=1 \
    STATCL_VARIANT=m8n8k4 STATCL_TEST_DEVICE=1 POCL_CACHE_DIR="$root/build/pocl-plain" \
    make -s -C tests/core test SUITES="$mma"
}

faults() {
  step mma-faults env POCL_CACHE_DIR="$root/build/pocl-plain" bash .ci/mma_faults.sh
  step adjoint-faults bash .ci/adjoint_faults.sh
  step roll-faults bash .ci/roll_faults.sh
}

# As CRAN's machines do it, which have no OpenCL platform, on the package as it was installed and
# with the vignettes as they were built. No network, no clock server; whatever CRAN looks at beyond
# --as-cran. No ERROR, WARNING or NOTE passes, except that of every new package; that an example
# took long on a busy machine is none. Separate folders show what is left behind; other programs may
# write to /tmp meanwhile.
# Threads of BLAS that wait for each other on a busy machine would count as time of the examples.
# codetools (half of the time; lint finds calls of what is defined nowhere) and the examples
# with what is in \donttest alternate.
r_cmd_check() {
  local code=false donttest=false
  if in_turn 0 2; then code=true; fi
  if in_turn 1 2; then donttest=true; fi
  mkdir -p build/check/home build/check/tmp
  step r-cmd-check env _R_CHECK_USE_CODETOOLS_=$code _R_CHECK_DONTTEST_EXAMPLES_=$donttest \
    OCL_ICD_VENDORS="$root/build/no-platform" OPENBLAS_NUM_THREADS=1 \
    _R_CHECK_CRAN_INCOMING_REMOTE_=false \
    _R_CHECK_SYSTEM_CLOCK_=0 _R_CHECK_THINGS_IN_TEMP_DIR_=true _R_CHECK_THINGS_IN_OTHER_DIRS_=true \
    _R_CHECK_THINGS_IN_OTHER_DIRS_EXCLUDE_='^/tmp/' HOME="$root/build/check/home" \
    TMPDIR="$root/build/check/tmp" \
    _R_CHECK_EXAMPLE_TIMING_THRESHOLD_=100000 STATCL_TEST_FILES="${few:+^session$}" \
    bash -c "cd build/check && R CMD check --as-cran --no-manual ${few:+--no-vignettes} \
        --no-build-vignettes \
        --install=check:$logs/install.log --library=$root/build/lib \
        $(basename "$tarball") &&
      bash ../../.ci/check_notes.sh statcl.Rcheck/00check.log"
}

documents() {
  if Rscript -e 'loadNamespace("roxygen2")' > /dev/null 2>&1; then
    step doc bash .ci/doc_drift.sh
  else
    skip doc "roxygen2 is not here: man/ and NAMESPACE are not compared with R/"
  fi
}

# And what all tests leave behind: nothing. (Kernels are compiled as for users: POCL 3.1 loses the
# status of batches of order 9 and more if it does not optimise them.)
tests_device() {
  step tests-device bash .ci/leaves_nothing.sh env NOT_CRAN=true STATCL_TEST_DEVICE=required \
    POCL_CACHE_DIR="$root/build/pocl" STATCL_TEST_ENGINE=device Rscript .ci/testthat.R
}

# Without an OpenCL platform.
tests_host() {
  step tests-host bash .ci/leaves_nothing.sh env NOT_CRAN=true \
    OCL_ICD_VENDORS="$root/build/no-platform" OPENBLAS_NUM_THREADS=1 Rscript .ci/testthat.R
}

# Each OpenCL implementation that is installed.
implementations() {
  step implementations env -u OCL_ICD_VENDORS bash .ci/implementations.sh
}

# The examples on a device, and what they leave behind: nothing.
examples_device() {
  step examples-device bash .ci/examples.sh
}

worked_example() {
  step worked-example bash .ci/worked_example.sh
}

demo() {
  step demo \
    Rscript -e 'source(system.file("examples", "demo.R", package = "statcl"))' build/demo
}

list="tests_host core_device tests_device r_cmd_check simulator core_gpu_kernels core_host faults
  core_mma core_mma_8"
if in_turn 0 2; then list+=" examples_device implementations"; fi
if in_turn 1 2; then list+=" worked_example demo"; fi
list+=" documents"
if [ -z "$few" ]; then list+=" core_elsewhere"; fi

# Takes the next step of the list until there is none; a line of the file is a step not yet taken.
worker() {
  local next
  while next=$(flock "$waiting.lock" sed -i -e "1{w /dev/stdout" -e "d}" "$waiting") &&
    [ -n "$next" ]; do
    "$next"
  done
}

printf '%s\n' $list > "$waiting"
workers=$(nproc)
if [ "$workers" -lt 2 ]; then workers=2; fi
if [ "$workers" -gt 4 ]; then workers=4; fi
# Each in a shell of its own, so that the times of its steps are its own.
for _ in $(seq "$workers"); do worker & done
wait
finish
