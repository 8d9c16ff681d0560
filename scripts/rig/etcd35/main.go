// Command etcd is the server of the minor version before the newest, for upgrades from one to the other.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
