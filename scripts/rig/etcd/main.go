// Command etcd is etcd's own server, built from its module.
//
// The rig builds it because the API server answers streamed lists (sendInitialEvents) with an error unless etcd
// supports progress requests, which the versions in Debian and on PyPI do not.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
