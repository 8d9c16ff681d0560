// Prints, as JSON, how Go encodes each struct of the Kubernetes API: by package and struct, each field's flags, kind and type.
// A field is "<flags> <kind> <type>": flags are "o" (omitempty), "z" (omitzero) or "-"; the type is what decoding errors name.
// A struct with an encoding of its own is left out.
// `make judge NAME=go-types` runs it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var (
	found     = map[string]map[string]map[string]string{}
	marshaler = reflect.TypeFor[json.Marshaler]()
)

func main() {
	all := scheme.Scheme
	must(apiextensions.AddToScheme(all))
	must(apiregistration.AddToScheme(all))
	for kind, goType := range all.AllKnownTypes() {
		if served(kind.Version) {
			visit(goType)
		}
	}
	delete(found, "k8s.io/apimachinery/pkg/runtime")
	print(os.Stdout)
}

// print writes one struct per line, so that versions can be compared.
func print(out io.Writer) {
	packages := []string{}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		structs := []string{}
		for _, name := range slices.Sorted(maps.Keys(found[path])) {
			fields, err := json.Marshal(found[path][name])
			must(err)
			structs = append(structs, fmt.Sprintf("  %q: %s", name, fields))
		}
		packages = append(packages, fmt.Sprintf(" %q: {\n%s\n }", published(path), strings.Join(structs, ",\n")))
	}
	fmt.Fprintf(out, "{\n%s\n}\n", strings.Join(packages, ",\n"))
}

// published is a package as the names of its OpenAPI schemas begin: io.k8s.api.core.v1.
func published(path string) string {
	host, rest, _ := strings.Cut(path, "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func served(version string) bool {
	return version != runtime.APIVersionInternal && !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
}

func visit(goType reflect.Type) {
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		visit(goType.Elem())
	case reflect.Struct:
		if !reflect.PointerTo(goType).Implements(marshaler) {
			visitStruct(goType)
		}
	}
}

func visitStruct(goType reflect.Type) {
	structs := found[goType.PkgPath()]
	if structs == nil {
		structs = map[string]map[string]string{}
		found[goType.PkgPath()] = structs
	}
	if structs[goType.Name()] == nil {
		fields := map[string]string{}
		structs[goType.Name()] = fields
		describe(goType, fields)
	}
}

func describe(goType reflect.Type, fields map[string]string) {
	for index := range goType.NumField() {
		field := goType.Field(index)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			describe(field.Type, fields)
			continue
		}
		fields[name] = flags(options) + " " + field.Type.Kind().String() + " " + field.Type.String()
		visit(field.Type)
	}
}

func flags(options string) string {
	written := ""
	if strings.Contains(options, "omitempty") {
		written += "o"
	}
	if strings.Contains(options, "omitzero") {
		written += "z"
	}
	if written == "" {
		return "-"
	}
	return written
}
