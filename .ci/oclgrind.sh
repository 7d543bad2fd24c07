#!/usr/bin/env bash
# Runs small problems through every kernel under oclgrind (a simulator that sees data races, reads
# of uninitialised memory, accesses out of bounds and misuse of the API) and fails on any report.
# Then plants faults in copies of the kernels: each must be reported, so that silence above means
# something. Topics and faults take turns (turn.sh).
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/turn.sh
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

icd=$(find /usr/lib /usr/local/lib -name liboclgrind-rt-icd.so 2> /dev/null | head -n 1)
if [ -z "$icd" ]; then
  echo "oclgrind's ICD library is not there"
  exit 1
fi
mkdir "$work/vendors"
echo "$icd" > "$work/vendors/oclgrind.icd"
export OCL_ICD_VENDORS=$work/vendors OCLGRIND_DATA_RACES=1 OCLGRIND_UNINITIALIZED=1
export OCLGRIND_CHECK_API=1 OCLGRIND_MAX_ERRORS=20 OCLGRIND_LOG=$work/log
export OCLGRIND_GLOBAL_MEM_SIZE=8589934592 STATCL_LOADER=$work/loader.so # buffers are kept
"${CC:-cc}" -shared -fPIC -o "$STATCL_LOADER" .ci/oclgrind_loader.c -Wl,--no-as-needed -lOpenCL \
  -ldl || exit 1

# simulate TOPIC...: true if all values are right. The simulator crashes on tables of constants,
# which only the topic integers has, while it looks for uninitialised memory.
simulate() {
  : > "$OCLGRIND_LOG"
  [ "$1" != integers ] || local -x OCLGRIND_UNINITIALIZED=0
  bash .ci/watched.sh "$work/out" Rscript .ci/oclgrind.R "$@"
}

# clean TOPIC [KIND]: every seventh topic of a day.
topics=0
clean() {
  local start=$SECONDS
  topics=$((topics + 1))
  in_turn "$topics" 7 || return 0
  if simulate "$1" && [ ! -s "$OCLGRIND_LOG" ]; then
    passed=$((passed + 1))
    echo "clean: $1${2:+, $2} ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    echo "not clean: $1${2:+, $2}"
    tail -n 15 "$work/out"
    head -n 40 "$OCLGRIND_LOG"
  fi
}
# Not optimised: the optimiser leaves instructions and declarations in these kernels that the
# simulator does not know.
plain() { OCLGRIND_BUILD_OPTIONS=-cl-opt-disable "$@"; }
for topic in $(Rscript .ci/oclgrind.R --list); do
  case $topic in
    glm | glm_batch | leapfrog | pass) plain clean "$topic" ;;
    vecchia) OCLGRIND_LOCAL_MEM_SIZE=65536 plain clean "$topic" ;; # room for 64 rows
    *) clean "$topic" ;;
  esac
done

# The simulator counts as a GPU; these topics have other kernels for CPUs. Not optimised:
# its check of uninitialised values fails in the optimiser's shuffles of vectors.
export OCLGRIND_LOCAL_MEM_SIZE=1048576
on_cpu() { STATCL_GPU_KERNELS=0 OCLGRIND_BUILD_OPTIONS=-cl-opt-disable "$@"; }
for topic in products triangular; do on_cpu clean "$topic" "CPU kernels"; done

# planted TOPIC FILE SED REPORT: changes a file in a copy of the kernels; the simulator must
# report it in these words. Every seventh one of a day.
faults=0
planted() {
  faults=$((faults + 1))
  in_turn "$faults" 7 || return 0
  local topic=$1 file=$2 change=$3 kernels=$work/kernels
  rm -rf "$kernels"
  cp -r inst/kernels "$kernels"
  sed -i -E "$change" "$kernels/$file"
  if cmp -s "$kernels/$file" "inst/kernels/$file"; then
    failed=$((failed + 1))
    echo "planting changed nothing: $file, $change"
    return
  fi
  STATCL_KERNELS=$kernels simulate "$topic"
  if grep -qE "$4" "$OCLGRIND_LOG"; then
    passed=$((passed + 1))
    echo "found: $4 planted in $file"
  else
    failed=$((failed + 1))
    echo "not found: $4 planted in $file"
    tail -n 5 "$work/out"
  fi
}
barrier='s/barrier *\(CLK_LOCAL_MEM_FENCE\) *;//'
planted reduce portable/reduce.cl "$barrier" 'data race|[Uu]ninitialized'
planted covariance portable/covariance.cl "$barrier" 'data race|[Uu]ninitialized'
planted program portable/groups.cl "$barrier" 'data race|[Uu]ninitialized'
planted sparse portable/compressed.cl "$barrier" 'data race|[Uu]ninitialized'
planted sparse portable/compressed.cl 's/e < end \? column/true ? column/' 'Invalid read'
OCLGRIND_LOCAL_MEM_SIZE=65536 plain planted vecchia portable/vecchia.cl "$barrier" \
  'data race|[Uu]ninitialized'
OCLGRIND_LOCAL_MEM_SIZE=65536 plain planted vecchia include/vecchia_tiles.h "$barrier" \
  'data race|[Uu]ninitialized'
plain planted glm portable/glm_pass.cl 's/^  barrier\(CLK_LOCAL_MEM_FENCE\);$//' \
  'data race|[Uu]ninitialized'
plain planted leapfrog portable/leapfrog_sum.cl "$barrier" 'data race|[Uu]ninitialized'
plain planted pass include/glm_tile.h 's/if \(k \* GLM_LANES \+ lane < p\) //' 'Invalid read'
planted elementwise portable/elementwise.cl 's/if \(i >= m\) return;//' 'Invalid (read|write)'
planted covariance portable/covariance_adjoint.cl \
  's/range\.sums\[k \* ADJOINT_STRIDE\] = 0\.0;/;/' \
  '[Uu]ninitialized'
on_cpu planted products cpu/gemm_cpu.cl 's/i < rows \? (x\[.*\]) : 0\.0/\1/' 'Invalid read'
on_cpu planted triangular cpu/triangular_cpu.cl 's/x\[p\] = \(real8\)\(0\.0\)/;/' \
  '[Uu]ninitialized'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
