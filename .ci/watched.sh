#!/usr/bin/env bash
# watched.sh LOG COMMAND...: runs a command with its output in the file LOG and ends with its
# status. A command that makes no progress for STATCL_PATIENCE seconds (600), by neither output nor
# processor time, is killed: status 124. A slow or busy machine is no reason to stop a command.
# Without /proc it waits for ever.
set -u
log=$1
shift
readonly patience=${STATCL_PATIENCE:-600}

# The command gets a session of its own, so that all its processes are known by it.
setsid "$@" > "$log" 2>&1 < /dev/null &
readonly session=$!

# A line for each process of the session: its number, the processor time (ticks) of it and of its
# children that have ended.
processes() {
  cat /proc/[0-9]*/stat 2> /dev/null | awk -v session="$session" '
    { pid = $1; sub(/^.*\) /, "") }
    $4 == session { print pid, $12 + $13 + $14 + $15 }'
}
kill_all() {
  local pids
  pids=$(processes | awk '{ print $1 }')
  # shellcheck disable=SC2086
  [ -z "$pids" ] || kill -KILL $pids 2> /dev/null
}
trap 'kill_all; exit 130' INT TERM

state() { processes; wc -c < "$log"; }
(
  before=$(state) idle=0
  while sleep 5; do
    now=$(state)
    if [ "$now" != "$before" ]; then idle=0; else idle=$((idle + 5)); fi
    before=$now
    if [ "$idle" -ge "$patience" ] && [ -d /proc/self ]; then
      echo "stopped: no output and no processor time for $idle s" >> "$log"
      kill_all
    fi
  done
) &
readonly watcher=$!
status=0
wait "$session" 2> /dev/null || status=$?
kill "$watcher" 2> /dev/null
if [ "$status" = 137 ] && tail -n 1 "$log" | grep -q '^stopped: no output'; then status=124; fi
exit "$status"
