#!/usr/bin/env bash
# Prints the build tags of our own that occur in the tree, one a line: every
# word of a go:build line that is no system, architecture or tag of the go
# command.
set -euo pipefail
cd "$(dirname "$0")/.."
find . -name '*.go' -not -path './bench/*' -not -path '*/testdata/*' |
	xargs -r grep -hE '^//go:build ' /dev/null |
	sed 's,^//go:build,,' | tr -c 'A-Za-z0-9_.\n' '\n' | sed '/^$/d' | sort -u |
	grep -vxE "ignore|race|cgo|unix|go1\.[0-9]+|gc|gccgo|msan|asan|$(go tool dist list | tr / '\n' | sort -u | paste -sd '|')" || true
