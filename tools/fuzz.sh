#!/usr/bin/env bash
# Runs every fuzz target of the module, each for the time given (default 10s).
# A failing input is kept in the package's testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
failed=0
while IFS=: read -r file name; do
	pkg=$(dirname "$file")
	echo "fuzz $pkg $name $time"
	go test "$pkg" -run '^$' -fuzz "^$name\$" -fuzztime "$time" || failed=1
done < <(find . -name '*_test.go' -not -path './bench/*' -not -path '*/testdata/*' |
	xargs -r grep -oE '^func Fuzz[A-Za-z0-9_]*' /dev/null | sed 's/func //' | sort)
exit "$failed"
