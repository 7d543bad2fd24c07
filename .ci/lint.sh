#!/usr/bin/env bash
# Rules that a compiler does not check. Prints each violation as file:line; ends with counts.
set -u
shopt -s lastpipe nullglob
cd "$(dirname "${BASH_SOURCE[0]}")/.."
passed=0 failed=0

# rule TEXT, with the offending lines on standard input: fails when there are any.
rule() {
  local lines
  lines=$(cat)
  if [ -z "$lines" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'not kept: %s\n%s\n' "$1" "$(sed 's/^/  /' <<< "$lines" | head -n 20)"
  fi
}

shopt -s globstar
# A copy of C files without their comments; lines keep their numbers, strings stay.
bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
perl -0777 -e 'use File::Basename; use File::Path;
  for my $file (@ARGV[1..$#ARGV]) {
    open my $in, "<", $file or die; my $text = <$in>;
    $text =~ s{("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*}{$1 // ($& =~ tr/\n//cdr)}gse;
    mkpath(dirname("$ARGV[0]/$file"));
    open my $out, ">", "$ARGV[0]/$file" or die; print $out $text;
  }' "$bare" src/**/*.[ch]
# grep over the code of files: find_code PATTERN FILE...
find_code() {
  (cd "$bare" && grep -nE "$1" "${@:2}" /dev/null)
}

glue=(src/init.c src/r/**/*.[ch])
core=()
for file in src/**/*.[ch]; do
  case $file in src/init.c | src/r/*) ;; *) core+=("$file") ;; esac
done
engine_cl=(src/engine/cl/**/*.[ch])
above_cl=()
for file in "${core[@]}"; do
  case $file in src/engine/cl/*) ;; *) above_cl+=("$file") ;; esac
done
text=$(git ls-files 2> /dev/null | grep -vE '\.(png|rds|rda|pdf)$')
[ -n "$text" ] || text=$(find . -path ./build -prune -o -type f -name '*.[RcChd]*' -print)

# ---- layers ----------------------------------------------------------------------------------
find_code '#[[:space:]]*include[[:space:]]*["<](R\.h|Rinternals|Rdefines|Rmath|Rconfig|R_ext)' \
  "${core[@]}" | rule "R's headers only in src/r/ and src/init.c"
find_code '#[[:space:]]*include[[:space:]]*[<"](CL|OpenCL)/' "${core[@]}" "${glue[@]}" |
  rule "no headers of OpenCL: what is used is in engine/cl/runtime/opencl.h"
find_code '#[[:space:]]*include[[:space:]]*"engine/cl/' "${above_cl[@]}" "${glue[@]}" |
  rule "the headers of engine/cl/ are private to it"
find_code '#[[:space:]]*include[[:space:]]*"engine/host/(host|lanes|plan)\.h"' \
  $(printf '%s\n' "${core[@]}" "${glue[@]}" | grep -v 'src/engine/host/') |
  rule "the headers of engine/host/ but blas.h and fortran.h are private to it"
perl .ci/layers.pl circles 2>&1 | rule "the layers of CONTRIBUTING.md; no circles"
find_code "\bscl_context_is_host[[:space:]]*\(" "${core[@]}" | grep -v ":bool scl_context_is_host" |
  rule "the core asks for traits of an engine, not whether it is the host"
find_code '\bcl_(int|mem|event|kernel|context|uint|ulong|command_queue|device_id)\b' \
  "${above_cl[@]}" "${glue[@]}" | rule "no OpenCL types above the device engine"

# ---- launches and kernels --------------------------------------------------------------------
launch=src/engine/cl/runtime/launch.c
numbers='\bSCL_K_[a-z]|\((enum )?scl_cl_kernel\)|\bkernel(\+\+| *\+=? )'
find_code "\\bclEnqueueNDRangeKernel\\b|$numbers" \
  $(printf '%s\n' "${engine_cl[@]}" | grep -vE "^($launch|src/engine/cl/runtime/cl\.h)\$") |
  rule "kernels are launched by scl_launch_*(), and chosen by scl_k_*, never by their number"
find_code '\bva_(arg|list)\b' $(printf '%s\n' "${engine_cl[@]}" | grep -v 'runtime/loader\.c') |
  rule "no arguments of unknown type in the device engine"
# A NAME_OF_WORDS, or TOPIC_NAME where the file or its folder is the topic, among the macros of the
# kernels; not where the host computes without them.
perl -0777 -ne '
  BEGIN { for my $f (glob "inst/kernels/*/*.{h,cl}") {
    open my $in, "<", $f or die; local $/; my $text = <$in>;
    $kernel{$1} = $f while $text =~ /^#[ ]*define[ ]+([A-Z]\w+)[ ]+\S/mg; } }
  s{/\*.*?\*/}{$& =~ tr/\n//cdr}gse;
  my ($folder, $file) = $ARGV =~ m{([^/]*)/([^/.]*)\.[ch]$};
  my @found = /^#[ ]*define[ ]+([A-Z]\w+)[ ]+\S/mg;
  push @found, $1 =~ /\b([A-Z]\w+)\s*=/g while /\benum\s*\w*\s*\{(.*?)\}/gs;
  for my $name (@found) {
    my ($there) = grep { /_/ && $kernel{$_} } $name, uc "${file}_$name", uc "${folder}_$name";
    print "$ARGV: $name is $there of $kernel{$there}\n" if $there;
  }' $(printf '%s\n' "${core[@]}" | grep -v '^src/engine/host/') |
  rule "constants of kernels are included, not copied"

# ---- what compiled code must not do ----------------------------------------------------------
forbidden='printf|puts|putchar|perror|exit|_exit|abort|assert|rand|srand'
find_code "\b($forbidden)[[:space:]]*\(" "${core[@]}" "${glue[@]}" |
  rule "no printing, exit, abort or rand in src/"
# It postpones a jump of R until the core has released its objects.
find_code '\b(longjmp|setjmp)[[:space:]]*\(' "${core[@]}" \
  $(printf '%s\n' "${glue[@]}" | grep -v 'r/interrupt') | rule "only r/interrupt.c jumps"
find_code '\bf(printf|puts|putc)[[:space:]]*\(|\b(stdout|stderr)\b' "${core[@]}" "${glue[@]}" |
  rule "no output streams in src/"
find_code '\b(strcpy|strcat|sprintf|vsprintf|gets)[[:space:]]*\(' "${core[@]}" "${glue[@]}" |
  rule "no unbounded string functions"
find_code '\b(Rf_error|error|errorcall|Rf_errorcall)[[:space:]]*\(' \
  $(printf '%s\n' "${glue[@]}" | grep -v 'r/throw') | rule "only src/r/throw.c raises R errors"
no_api='ATTRIB|OBJECT|CLOENV|BODY|FORMALS|FRAME|ENCLOS|NAMED|LEVELS|ALTREP|PRVALUE|STRING_PTR'
no_api+='|DATAPTR|(SET_?)?TRUELENGTH|SETLENGTH|SET_(ATTRIB|OBJECT|TYPEOF)|Rf_findVar(InFrame3?)?'
find_code "\b($no_api|R_UnboundValue)\b" \
  $(printf '%s\n' "${glue[@]}" | grep -v 'src/r/api\.h') |
  rule "what is not in R's API only in src/r/api.h, for earlier versions"
grep -nE -- '-cl-(fast-relaxed|finite-math|unsafe-math|mad-enable)' src/**/*.c inst/kernels/*/* |
  rule "no build options that change arithmetic"
grep -nE '(\$\(shell|\$\(wildcard|^ifeq|^ifneq|-march|-O3|-Wno-|%\.o)' src/Makevars.in /dev/null |
  rule "portable Makevars"
grep -nE '\b(atomic_add|atom_cmpxchg|atomic_cmpxchg|atomic_fetch_add|atom_add)\b' inst/kernels/*/* |
  rule "no atomics in kernels: sums keep one order"

# ---- text ------------------------------------------------------------------------------------
grep -nP '[^\x00-\x7F]' $text | rule "plain ASCII in every file"
grep -nP '\t' $(grep -vE '(Makefile|Makevars.*)$' <<< "$text") | rule "no tabs"
grep -nE '[[:space:]]+$' $(grep -v 'messages/unreachable' <<< "$text") |
  rule "no white space at line ends"
grep -nE '^(<<<<<<<|>>>>>>>|=======$)' $text | rule "no conflict markers"
grep -nE '(/home/[a-z]|/tmp/[a-z]|/Users/|C:\\\\Users)' \
  $(grep -v '^\.ci/lint.sh' <<< "$text") | rule "no paths of one machine"
awk 'length($0) > 100 && !/https?:/ {print FILENAME ":" FNR ": " length($0) " columns"}' \
  $(grep -E '\.(R|c|h|cl|def|sh)$|^dev$|^configure$' <<< "$text") | rule "at most 100 columns"
wc -l $(grep -E '\.(R|c|h|cl)$' <<< "$text") | awk '$2 != "total" && $1 > 500 {print $2 ": " $1}' |
  rule "files of at most 500 lines"

perl .ci/function_sizes.pl 60 $(grep -E '^src/.*\.[ch]$' <<< "$text") |
  rule "C functions of at most 60 lines"
perl .ci/function_sizes.pl 80 inst/kernels/*/*.h inst/kernels/*/*.cl |
  rule "kernel functions of at most 80 lines"

# ---- R and shell -----------------------------------------------------------------------------
Rscript .ci/rooms.R 2>&1 | rule "R's rooms as in CONTRIBUTING.md; no name twice or nowhere"
perl .ci/named.pl | rule "names that prose mentions exist"
rfiles=$(grep -E '\.R$' <<< "$text" || true)
if [ -n "$rfiles" ]; then
  grep -nE '\|>|\\\(' $rfiles | grep -vE '"[^"]*(\|>|\\\()[^"]*"|#.*' | rule "R syntax of R 4.0"
  grep -nE '(^|[^.[:alnum:]_])(library|require|attach)\(' \
    $(grep -E '^R/' <<< "$text") /dev/null | grep -vE "#'|# " | rule "R/ attaches nothing"
  # Others ask family_row(). Calls of the functions that take a name, and defaults, may have one.
  rows=$(sed -nE 's/^  ([A-Za-z._0-9]+) = new_family_row\(.*/\1/p' R/family-table.R
         sed -nE 's/^  ([A-Za-z.]+) = list\(.*/\1/p' R/family-r.R)
  names=$(tr -s ' \n' '|' <<< "$rows" | sed 's/^|//; s/|$//; s/\./\\./g')
  grep -nP "(?<!\\\\)\"($names)\"|\bswitch\([^,(]*\bfamily\b" \
    $(grep -E '^R/' <<< "$text" | grep -vE '^R/family') /dev/null |
    grep -vE ":[0-9]+: *#|family = \"|cl_(likelihood|glm_lpdf)\(\"" |
    rule "names of families only in the table of families"
fi
for file in dev .ci/run .ci/*.sh; do
  bash -n "$file" 2>&1
done | rule "bash syntax"
for file in configure cleanup configure.win cleanup.win; do
  sh -n "$file" 2>&1
done | rule "sh syntax"
grep -nE '\[\[|\bfunction \w|<<<|\$\{[a-z_]+//|\blocal\b|==' configure cleanup configure.win |
  grep -v '^[^:]*:[0-9]*:#' | rule "configure is plain sh"
for file in inst/kernels/*/*.cl; do
  name=$(basename "$file" .cl)
  name=${name%%_*}
  grep -oE '__kernel +void +[a-z0-9_]+' "$file" | awk '{print $3}' |
    grep -v "^${name}_" | sed "s|^|$file: |"
done | rule "a kernel's name starts with its topic, the first word of its file's name"

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
