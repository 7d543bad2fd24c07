# Sourced: what takes turns by day. `./dev check` has the day in STATCL_TEST_TURN; without it, as
# with --long, all is done.

# Days from 1970 to the commit, so that its check can be repeated; to today where git knows none.
commit_day() { echo $(($(git log -1 --format=%ct 2> /dev/null || date +%s) / 86400)); }

# in_turn ITEM DAYS: item number ITEM is done once in DAYS days, and on this one.
in_turn() { [ -z "${STATCL_TEST_TURN:-}" ] || [ $((($1 + STATCL_TEST_TURN) % $2)) = 0 ]; }
