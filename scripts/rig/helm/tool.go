//go:build never

// Package helm names the program that is built from this module, so that `go mod tidy` keeps what it needs.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
