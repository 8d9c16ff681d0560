package main

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A field is "<name> <flags> <shape> <type>", by its number.
//
// The name is that of JSON, and "-" if the fields of the message are those of the one around it. Flags are "o" (omitempty),
// "z" (omitzero) or "-". The shape is value, pointer, list or map (by strings). The type is that of protobuf, another
// message, or one of those that have an encoding of their own.
type fields map[string]string

type table struct {
	Kinds    map[string]map[string]string `json:"kinds"`
	Messages map[string]fields            `json:"messages"`
}

// special are the types whose JSON is not that of their fields.
var special = map[string]string{
	"meta/v1.Time":             "time",
	"meta/v1.MicroTime":        "microtime",
	"meta/v1.Duration":         "duration",
	"meta/v1.FieldsV1":         "raw",
	"pkg/runtime.RawExtension": "raw",
	"apiextensions/v1.JSON":    "raw",
	"api/resource.Quantity":    "quantity",
	"util/intstr.IntOrString":  "intorstring",
}

var scalars = map[reflect.Kind]string{
	reflect.String:  "string",
	reflect.Bool:    "bool",
	reflect.Int32:   "int32",
	reflect.Int64:   "int64",
	reflect.Float64: "double",
}

func messages(kinds map[schema.GroupVersionKind]reflect.Type) table {
	made := table{map[string]map[string]string{}, map[string]fields{}}
	for _, kind := range ordered(kinds) {
		version := kind.GroupVersion().String()
		if made.Kinds[version] == nil {
			made.Kinds[version] = map[string]string{}
		}
		made.Kinds[version][kind.Kind] = made.named(kinds[kind])
	}
	return made
}

// named is how a struct is called; it and all that it needs are in the table then.
func (made table) named(goType reflect.Type) string {
	name := short(goType)
	if kind, isSpecial := special[name]; isSpecial {
		return kind
	}
	if made.Messages[name] == nil {
		made.Messages[name] = fields{}
		made.describe(goType, made.Messages[name])
	}
	return name
}

func (made table) describe(goType reflect.Type, into fields) {
	for index := range goType.NumField() {
		field := goType.Field(index)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) == 1 {
			if field.Name != "TypeMeta" {
				panic(fmt.Sprintf("%s.%s is not in protobuf", goType, field.Name))
			}
			continue
		}
		shape, name := made.shape(field.Type)
		_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		into[tag[1]] = strings.Join([]string{label(field, tag), flags(options, name), shape, name}, " ")
	}
}

// label is the name of a field: in JSON, or if it has none there, in protobuf.
func label(field reflect.StructField, tag []string) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name != "":
		return name
	case field.Anonymous:
		return "-"
	}
	return strings.TrimPrefix(tag[3], "name=")
}

func (made table) shape(goType reflect.Type) (string, string) {
	switch {
	case goType.Kind() == reflect.Pointer:
		return "pointer", made.element(goType.Elem())
	case isBytes(goType):
		return "value", "bytes"
	case goType.Kind() == reflect.Slice && !isWrapper(goType):
		return "list", made.element(goType.Elem())
	case goType.Kind() == reflect.Map:
		return "map", made.element(goType.Elem())
	}
	return "value", made.element(goType)
}

func (made table) element(goType reflect.Type) string {
	if name, isScalar := scalars[goType.Kind()]; isScalar {
		return name
	}
	switch {
	case isBytes(goType):
		return "bytes"
	case isWrapper(goType) && goType.Elem().Kind() == reflect.String:
		return "strings"
	case goType.Kind() == reflect.Struct:
		return made.named(goType)
	}
	panic(fmt.Sprintf("%s cannot be described", goType))
}

func isBytes(goType reflect.Type) bool {
	return goType.Kind() == reflect.Slice && goType.Elem().Kind() == reflect.Uint8
}

// isWrapper is whether a slice is a message of its own.
func isWrapper(goType reflect.Type) bool {
	_, marshals := reflect.New(goType).Interface().(interface{ Marshal() ([]byte, error) })
	return goType.Kind() == reflect.Slice && marshals
}

func flags(options, name string) string {
	switch {
	case strings.Contains(options, "omitzero") && name != "time":
		panic("omitzero is known of times alone, not of " + name)
	case strings.Contains(options, "omitzero"):
		return "z"
	case strings.Contains(options, "omitempty"):
		return "o"
	}
	return "-"
}

// short is the end of a package's path, and the type: core/v1.Pod.
func short(goType reflect.Type) string {
	parts := strings.Split(goType.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + "." + goType.Name()
}
