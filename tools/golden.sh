#!/usr/bin/env bash
# Writes the golden files of every package whose tests define the flag -update.
set -euo pipefail
cd "$(dirname "$0")/.."
find . -name '*_test.go' -not -path './bench/*' -not -path '*/testdata/*' -print0 |
	{ xargs -0 -r grep -lE 'flag\.Bool(Var)?\(.*"update"' /dev/null || true; } |
	sed 's,/[^/]*$,,' | sort -u |
	while read -r dir; do
		go test "$dir" -count=1 -update
	done
