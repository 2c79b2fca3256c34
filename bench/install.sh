#!/bin/sh
# Installs what the comparison needs beside Go, if it is missing: ZooKeeper's
# jars and a Java to run them.
set -eu

missing=
[ -e /usr/share/java/zookeeper.jar ] || missing="$missing zookeeper"
command -v java >/dev/null 2>&1 || missing="$missing default-jre-headless"
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
if ! command -v apt-get >/dev/null 2>&1; then
	echo "install.sh: no apt-get; install these by hand:$missing" >&2
	exit 1
fi
$as_root apt-get update -q
# shellcheck disable=SC2086 # several packages
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -q -y --no-install-recommends $missing
