// Prints, as JSON, what is needed to read Kubernetes' protobuf bodies, or samples of such bodies to test that with.
//
// Run by `python -m kubernetes_api.protobuf`.
package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func main() {
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(apiregistration.AddToScheme(scheme.Scheme))
	meta.AddToGroupVersion(scheme.Scheme, meta.SchemeGroupVersion)
	var printed any
	switch os.Args[1] {
	case "messages":
		printed = messages(kinds())
	case "samples":
		printed = samples(kinds())
	}
	must(json.NewEncoder(os.Stdout).Encode(printed))
}

// kinds are those that a body can be of: what is served, without lists, and the options of a deletion, which every group has.
func kinds() map[schema.GroupVersionKind]reflect.Type {
	found := map[schema.GroupVersionKind]reflect.Type{}
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		_, isObject := reflect.New(goType).Interface().(meta.Object)
		if isObject && served(kind.Version) {
			found[kind] = goType
		}
	}
	found[meta.SchemeGroupVersion.WithKind("DeleteOptions")] = reflect.TypeFor[meta.DeleteOptions]()
	return found
}

func served(version string) bool {
	return version != runtime.APIVersionInternal && !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
}

func ordered(kinds map[schema.GroupVersionKind]reflect.Type) []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(kinds), func(one, other schema.GroupVersionKind) int {
		return cmp.Compare(one.String(), other.String())
	})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
