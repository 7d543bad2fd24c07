#!/usr/bin/env bash
# Plants faults in copies of the kernels of matrix instructions and runs these, emulated, by the
# suites mma_* of tests/core (which must have been built): each fault must be found, by a wrong
# result or a write outside the result. Every fifth one of a day (turn.sh).
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/turn.sh
passed=0 failed=0 faults=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=$PWD/${STATCL_CORE_TESTS:-build/core/core-tests}
export STATCL_MMA_EMULATED=1 STATCL_TEST_DEVICE=1 STATCL_TEST_SMALL=1
export ASAN_OPTIONS=detect_leaks=0 STATCL_KERNELS=$work/kernels

# suite NAME: true if all its checks pass.
suite() { (cd tests/core && STATCL_TEST_TURN='' "$tests" "$1") > "$work/out" 2>&1; }

# planted SUITE FILE SED WHAT
planted() {
  local name=$1 file=$2 change=$3 what=$4
  faults=$((faults + 1))
  in_turn "$faults" 5 || return 0
  rm -rf "$work/kernels"
  cp -r inst/kernels "$work/kernels"
  sed -i -E "$change" "$work/kernels/nvidia/$file"
  if cmp -s "$work/kernels/nvidia/$file" "inst/kernels/nvidia/$file"; then
    echo "planting changed nothing: $file, $change"
  elif suite "$name"; then
    echo "not found: $what, in $file"
  elif ! grep -q '^FAILED' "$work/out"; then
    echo "$name did not end by itself: $what, in $file"
  else
    echo "found: $what, in $file"
    passed=$((passed + 1))
    return
  fi
  tail -n 5 "$work/out"
  failed=$((failed + 1))
}

planted integers integers_mma.cl 's/INTEGERS_PLACES - 3\)/INTEGERS_PLACES - 2)/' \
  'copies read before they arrive'
planted integers integers_mma.cl 's/to = integers_after\(to\)/to = to > 1 ? 1 : to + 1/' \
  'another place when the ring has gone round'
planted mma_chol panels_mma.h 's/a\[0\], a\[2\], a\[1\], a\[3\]/a[0], a[1], a[2], a[3]/' \
  'lanes in the wrong order'
planted mma_gemm gemm_mma_results.h 's/row < m && column < n/row <= m \&\& column < n/' \
  'a row too many'
planted mma_gemm gemm_mma.cl 's/MMA_STAGES - 2 \* MMA_TOGETHER/MMA_STAGES - MMA_TOGETHER/' \
  'copies read before they arrive'
planted mma_gram gram_mma.cl 's/GRAM_STAGES - 2\)/GRAM_STAGES - 1)/' \
  'copies read before they arrive'
planted mma_gram gram_mma.cl 's/at \+ 1 < end/at < end/' 'a weight too many'
planted mma_chol triangular_mma.cl 's/MMA_WAIT\(&copies, 1\)/MMA_WAIT(\&copies, 2)/' \
  'copies read before they arrive'
planted mma_glm glm_mma_sums.h 's/mma_warp_sync\(self\);//' \
  'lanes that do not wait for each other'
planted glm_walk glm_mma_walk.cl 's/sums\[3 \* GLM_OWN/sums[2 * GLM_OWN/' \
  'a warp whose sums are left out'
planted mma_batch batch_solve_mma.cl 's/barrier\(CLK_LOCAL_MEM_FENCE\);//' 'no barriers'
planted mma_batch batch_matmul_mma_group.cl 's/q \+ d < k \? 8 : 0/8/' 'a sum too long'
planted mma_chol cholesky_mma.cl 's/block_row->number == p \+ 1/block_row->number == p + 2/' \
  'the wrong block row is next'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
