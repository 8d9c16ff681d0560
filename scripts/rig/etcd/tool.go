//go:build never

// The tool that restores snapshots is built by its own path; this import keeps it in go.mod.
package main

import _ "go.etcd.io/etcd/etcdutl/v3"
