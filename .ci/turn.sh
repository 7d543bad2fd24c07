# Sourced: what is done today. `./dev check` counts the days in STATCL_TEST_TURN; without it, as
# with --long, all is done.

# in_turn ITEM DAYS: item number ITEM is done once in DAYS days, and today.
in_turn() { [ -z "${STATCL_TEST_TURN:-}" ] || [ $((($1 + STATCL_TEST_TURN) % $2)) = 0 ]; }
