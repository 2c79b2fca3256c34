// Command etcd is an unchanged etcd server, built from its module so that the
// comparison needs no release binary.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
