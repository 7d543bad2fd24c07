#!/usr/bin/env bash
# leaves_nothing.sh COMMAND...: runs it with folders of its own for the user's files (HOME) and for
# temporary ones. It fails, and lists the files, if any remain there or among the sources; R's
# folder of a process that was killed is none of them.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place"/{home,tmp}
sources() { git status --porcelain 2> /dev/null; }
sources > "$place/before"
status=0
env -u XDG_CACHE_HOME -u XDG_CONFIG_HOME -u XDG_DATA_HOME HOME="$place/home" \
  TMPDIR="$place/tmp" "$@" || status=$?
left=$(find "$place/home" "$place/tmp" -mindepth 1 -not -path "$place/tmp/Rtmp*"
  sources | diff "$place/before" - | grep '^>')
if [ -n "$left" ]; then
  printf 'left behind:\n%s\n' "$left"
  exit 1
fi
exit "$status"
