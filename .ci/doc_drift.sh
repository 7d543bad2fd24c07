#!/usr/bin/env bash
# Fails if man/ or NAMESPACE differ from what roxygen2 makes of the comments in R/.
set -euo pipefail
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r DESCRIPTION NAMESPACE R man "$copy"
before=$copy/before
mkdir "$before"
cp -r "$copy"/{DESCRIPTION,NAMESPACE,man} "$before"
version=$(Rscript -e 'cat(format(packageVersion("roxygen2")))')
if ! grep -q "^RoxygenNote: $version\$" DESCRIPTION; then
  echo "roxygen2 $version is not the version that wrote man/: not compared"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
Rscript -e 'roxygen2::roxygenise(commandArgs(TRUE), load_code = "installed")' "$copy"
status=0
for what in DESCRIPTION NAMESPACE man; do
  diff -r "$before/$what" "$copy/$what" || status=1
done
[ $status = 0 ] || echo "run ./dev doc and commit what it changes"
exit $status
