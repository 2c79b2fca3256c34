#!/usr/bin/env bash
# A rescale on a cluster of three processes, with the leader killed in the middle.
# Run from the root of the repository, as `make demo` does. It ends with an error
# if any bucket count, layout epoch or id is not what it has to be, and takes
# about ten seconds. STAVE_DEMO_PORT chooses the first of its nine ports.
set -euo pipefail

table=shop.orders
sample=testdata/sample/catalog.jsonl
# free PORT: nobody listens on any of the nine ports counted from it.
free() {
	for i in 1 2 3 11 12 13 21 22 23; do
		(: <"/dev/tcp/127.0.0.1/$(($1 + i))") 2>/dev/null && return 1
	done
	return 0
}
port=${STAVE_DEMO_PORT:-$((10000 + $$ % 20000))}
until [ -n "${STAVE_DEMO_PORT:-}" ] || free "$port"; do port=$((10000 + (port + 31) % 20000)); done
dir=$(mktemp -d "${TMPDIR:-/tmp}/stave-demo.XXXXXX")
stave=$dir/stave
pids=(0 0 0 0)
unset STAVE_ENDPOINTS
endpoints=127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2)),127.0.0.1:$((port + 3))

cleanup() {
	rc=$?
	trap - EXIT
	for pid in "${pids[@]}"; do
		[ "$pid" = 0 ] || kill -9 "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	if [ $rc -ne 0 ]; then
		echo "demo: FAILED; the end of the nodes' logs:" >&2
		tail -n 5 "$dir"/n*.log >&2 || true
	fi
	rm -rf "$dir"
	exit $rc
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }
fail() { echo "demo: $*" >&2; exit 1; }
# want WHAT GOT WANTED
want() { [ "$2" = "$3" ] || fail "$1 is '$2', want '$3'"; }
# cli VERB: everything after the build ends within a minute, or fails.
cli() {
	[ "$SECONDS" -lt 50 ] || fail "took longer than 50 s"
	"$stave" --endpoints "$endpoints" --timeout 9s "$@"
}

start() {
	"$stave" server --id "n$1" --data-dir "$dir/n$1" --cluster-token demo \
		--raft-addr "127.0.0.1:$((port + 20 + $1))" --api-addr "127.0.0.1:$((port + $1))" --http-addr "127.0.0.1:$((port + 10 + $1))" \
		--initial-cluster "n1=127.0.0.1:$((port + 21)),n2=127.0.0.1:$((port + 22)),n3=127.0.0.1:$((port + 23))" \
		>>"$dir/n$1.log" 2>&1 &
	pids[$1]=$!
}

# await COMMAND: until it succeeds.
await() {
	while [ "$SECONDS" -lt 50 ]; do
		"$@" >/dev/null 2>&1 && return
		for pid in "${pids[@]}"; do
			[ "$pid" = 0 ] || kill -0 "$pid" 2>/dev/null || fail "a node ended by itself"
		done
		sleep 0.2
	done
	fail "waited too long for: $*"
}

# Columns: partition, id, buckets, epoch, legacy.
partitions() { cli partition list "$table" "$@" | awk 'NR > 1 { print $1, $2, $3, $4, $5 }'; }
# Columns: buckets, epoch, legacy count.
layout() { cli table list shop | awk -v t="$table" '$1 == t { print $3, $4, $5 }'; }
leader() { cli cluster status | awk '$1 == "leader" { print $2 }'; }
# summary FILE: how many partitions share a count and an epoch.
summary() { awk '{ n[$3 " buckets, epoch " $4 ", legacy " $5]++ } END { for (k in n) print n[k], "partitions:", k }' "$1" | sort; }

say "building, and starting three nodes in $dir"
go build -o "$stave" ./cmd/stave
SECONDS=0
for i in 1 2 3; do start $i; done
await "$stave" --endpoints "$endpoints" --timeout 2s cluster status
cli cluster status

say "importing $sample"
cli import "$sample"
want "number of tables" "$(cli table list | awk 'NR > 1' | wc -l | tr -d ' ')" 30
want "rows of partitions" "$(cli cluster status | sed -n 's/.* tables, \([0-9]*\) partitions.*/\1/p')" 4968
want "an export without its first line" "$(cli export | tail -n +2 | cksum)" "$(tail -n +2 $sample | cksum)"

say "a partition before the rescale"
want "$table before" "$(layout)" "4 0 -"
cli partition create "$table" dt=2026-12-01
partitions >"$dir/before"
want "partitions before" "$(wc -l <"$dir/before" | tr -d ' ')" 181
want "legacy partitions before" "$(grep -c ' true$' "$dir/before")" 60
want "the new partition" "$(grep '^dt=2026-12-01 ' "$dir/before")" "dt=2026-12-01 4968 4 0 false"
summary "$dir/before"

say "the rescale from 4 to 8 buckets"
cli table rescale "$table" --buckets 8 --expect-epoch 0

victim=$(leader)
say "killing the leader, $victim, with SIGKILL"
kill -9 "${pids[${victim#n}]}"
wait "${pids[${victim#n}]}" 2>/dev/null || true
pids[${victim#n}]=0

say "a partition after the rescale, from the two nodes that are left"
cli partition create "$table" dt=2026-12-02
want "$table after" "$(layout)" "8 1 4"
partitions >"$dir/after"
grep -v '^dt=2026-12-02 ' "$dir/after" >"$dir/kept"
cmp -s "$dir/before" "$dir/kept" || fail "a partition changed: $(diff "$dir/before" "$dir/kept" | head -5)"
want "the new partition" "$(grep '^dt=2026-12-02 ' "$dir/after")" "dt=2026-12-02 4969 8 1 false"
summary "$dir/after"
[ "$(leader)" != "$victim" ] || fail "$victim still leads"

say "the same rescale again changes nothing"
cli table rescale "$table" --buckets 8
want "$table after a repeated rescale" "$(layout)" "8 1 4"

say "$victim comes back and catches up"
start "${victim#n}"
endpoints=127.0.0.1:$((port + ${victim#n}))
await "$stave" --endpoints "$endpoints" --timeout 2s cluster status
partitions >"$dir/returned"
cmp -s "$dir/after" "$dir/returned" || fail "$victim shows other partitions"
cli layout "$table" | sed -n '1,6p;179,$p'

say "stopping the nodes"
for i in 1 2 3; do kill -TERM "${pids[$i]}"; done
for i in 1 2 3; do
	wait "${pids[$i]}" || fail "n$i did not stop cleanly"
	pids[$i]=0
done
say "done: every count, epoch and id is as it has to be"
