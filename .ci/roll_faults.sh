#!/usr/bin/env bash
# Removes checks from the pass that rolls loops (src/program/roll*.c), one at a time: random loops,
# rolled and as they were recorded, must differ then. (Other checks only keep what is not safe from
# a second one, which leaves such a program as it is: values that have no place.) Signatures of
# operations are blunted, as they only propose what the checks decide; without a fault that must not
# matter. Each fault is planted once in six days (turn.sh).
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/turn.sh
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/package" "$work/library"
git ls-files -z DESCRIPTION NAMESPACE LICENSE R src inst configure cleanup |
  xargs -0 cp --parents -t "$work/package" || exit 1
source=$work/package/src/program

# All faults are compiled into one library; ROLL_FAULT says which one is there.
cat > "$source/planted.h" << 'END'
#include <stdlib.h>
#include <string.h>
static inline int planted(const char *name) {
  const char *fault = getenv("ROLL_FAULT");
  return fault != NULL && strcmp(fault, name) == 0;
}
END
names=()

# plant NAME FILE OLD NEW: NEW in place of OLD, which stands once in the file. PLANTED in NEW is
# true if the fault is to be there.
plant() {
  perl -0pi -e 'BEGIN { ($name, $old, $new) = splice @ARGV, 0, 3;
      $new =~ s/PLANTED/planted("$name")/; }
    my $count = s/\Q$old\E/$new/g; die "\"$old\" does not stand once in $ARGV\n" if $count != 1;
    s/\A(.*?\*\/\n)/$1#include "program\/planted.h"\n/s unless /planted\.h/;' \
    "$1" "$3" "$4" "$source/$2" || exit 1
  names+=("$1")
}
# without NAME FILE CONDITION: `if (CONDITION) return false;` is left out.
without() { plant "$1" "$2" "if ($3) return false;" "if (!PLANTED && ($3)) return false;"; }

perl -0pi -e 's/(hash = scl_tape_mix\(v->kind, )v->op\)/${1}0)/ or die' "$source/tape.c" || exit 1
without "operation of a class" roll_class.c '!scl_roll_same_operation(r, member[0], member[i])'
without "operation of a step" roll_loops.c '!scl_roll_same_operation(s->r, node_at(s, i, p), node)'
without "the same lag in all iterations" roll_loops.c \
  'x.root != node_at(s, i - lag, q) || x.at != last.at'
plant "values before the loop" roll_loops.c \
  'return same_element(s->r, state->init, wanted.init) ? k : NONE;' \
  'return PLANTED || same_element(s->r, state->init, wanted.init) ? k : NONE;'
plant "sums of whole values" roll_sums.c 'return whole ? root : SCL_ROLL_NONE;' \
  'return whole || PLANTED ? root : SCL_ROLL_NONE;'
plant "signs of terms" roll_sums.c 'minus = minus != (second && k == 1);' \
  'minus = minus != (second && k == 1 && !PLANTED);'
plant "elements that are the same" roll_loops.c \
  'return r->number[a.root] == r->number[b.root] && a.at == b.at;' \
  'return r->number[a.root] == r->number[b.root] && (PLANTED || a.at == b.at);'
plant "numbers that are the same" roll_view.c \
  'if (memcmp(&v->number, &w->number, sizeof v->number) != 0) return false;' \
  'if (!PLANTED && memcmp(&v->number, &w->number, sizeof v->number) != 0) return false;'
plant "order of elements" roll_gather.c 'if ((ptrdiff_t)x[k].at != at) return false;' \
  'if (!PLANTED && (ptrdiff_t)x[k].at != at) return false;'
plant "all elements are one" roll_gather.c 'if (!same_source(s[k], s[0])) return false;' \
  'if (!same_source(s[PLANTED ? 1 : k], s[0])) return false;'
plant "equal data" roll_gather.c \
  'memcmp(d->numbers, numbers, count * sizeof *numbers) != 0) continue;' \
  '(!PLANTED && memcmp(d->numbers, numbers, count * sizeof *numbers) != 0)) continue;'
plant "extremes whose derivatives count" roll_class.c '(extreme ? c->shifts' \
  '(extreme ? PLANTED || c->shifts'
plant "weights of terms" roll_total.c 'weight[some - 1] += 1.0;' \
  'weight[some - 1] += !PLANTED;'
plant "equal sums" roll_total.c '(numbered){r->number[member[i]], member[i]}' \
  '(numbered){PLANTED ? 0 : r->number[member[i]], member[i]}'
plant "order of what is the same at all steps" roll_scan.c 'w->of_kept = sorted;' \
  'if (!PLANTED) w->of_kept = sorted;'

plant "first values before the results" roll_scan.c 'from + (early != NONE) + i' \
  'from + (early != NONE && !PLANTED) + i'
plant "inputs that are only added" roll_scan.c 'uses[a] != 1 || uses[b] != 1' \
  '!PLANTED && (uses[a] != 1 || uses[b] != 1)'
without "a state that only the end reads" roll_inits.c \
  'state->lag != 1 || l->out[l->place[state->position]] == NONE'

R CMD INSTALL --no-byte-compile --no-test-load --no-docs --library="$work/library" \
  "$work/package" > "$work/log" 2>&1 || { tail -n 5 "$work/log"; exit 1; }

# Whether special loops and those of so many seeds agree; stops at the first that does not.
cat > "$work/loops.R" << 'END'
library(statcl, lib.loc = commandArgs(TRUE)[1L])
cl_use(engine = "host")
source("tests/testthat/helper-roll.R")
special <- length(special_loops)
for (seed in seq_len(special + as.integer(commandArgs(TRUE)[2L]))) {
  set.seed(seed)
  f <- if (seed <= special) loop_function(special_loops[[seed]], roll_data(31L)) else
    loop_function(random_loop(), roll_data(sample(c(10L, 20L, 31L), 1L)))
  error <- tryCatch(roll_error(f, list(a = rnorm(5), b = 0.3, s = -0.2)), error = function(e) Inf)
  if (!isTRUE(error < 1e-9)) quit(status = 3)
}
END
loops() {
  ROLL_FAULT=${2:-} OCL_ICD_VENDORS=/nonexistent Rscript "$work/loops.R" "$work/library" "$1" \
    > "$work/out" 2>&1
}

loops 30 || { echo "loops differ without a fault"; tail -n 3 "$work/out"; exit 1; }
for ((k = 0; k < ${#names[@]}; k++)); do
  in_turn "$k" 6 || continue
  loops 200 "${names[k]}"
  if [ $? = 3 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "not found: without the check of ${names[k]}"
  fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
