package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// A sample is an object as a Go client sends it in protobuf, and what Go makes of it in JSON.
type sample struct {
	Protobuf []byte          `json:"protobuf"`
	JSON     json.RawMessage `json:"json"`
}

// filler fills objects with the same values at every run. The first struct of each type is filled completely, so that no
// field is without a sample; the others at random, so that the samples stay small.
type filler struct {
	rng  *rand.Rand
	seen map[reflect.Type]bool
}

const deepest = 14

func samples(kinds map[schema.GroupVersionKind]reflect.Type) []sample {
	made := []sample{}
	fill := filler{rand.New(rand.NewPCG(1, 36)), map[reflect.Type]bool{}}
	for _, kind := range ordered(kinds) {
		empty := reflect.New(kinds[kind])
		filled, sparse := reflect.New(kinds[kind]), reflect.New(kinds[kind])
		fill.fill(filled.Elem(), 0)
		fill.fill(sparse.Elem(), 0)
		for _, value := range []reflect.Value{empty, filled, sparse} {
			made = append(made, encoded(value.Interface().(runtime.Object), kind))
		}
	}
	return made
}

func encoded(object runtime.Object, kind schema.GroupVersionKind) sample {
	object.GetObjectKind().SetGroupVersionKind(kind)
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	var sent bytes.Buffer
	must(serializer.Encode(object, &sent))
	received := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	received, _, err := serializer.Decode(sent.Bytes(), nil, received)
	must(err)
	received.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(received)
	must(err)
	return sample{sent.Bytes(), text}
}

func (fill filler) fill(value reflect.Value, depth int) {
	if fill.special(value, depth) {
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(fmt.Sprintf("text-é-%d", fill.rng.IntN(1000)))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32:
		value.SetInt(int64(int32(fill.rng.Uint32())))
	case reflect.Int64:
		value.SetInt(int64(fill.rng.Uint64()) >> fill.rng.IntN(64))
	case reflect.Float64:
		value.SetFloat(float64(fill.rng.IntN(100)) / 4)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill.fill(value.Elem(), depth)
	case reflect.Slice:
		fill.slice(value, depth)
	case reflect.Map:
		fill.mapping(value, depth)
	case reflect.Struct:
		fill.structure(value, depth)
	default:
		panic(fmt.Sprintf("%s cannot be filled", value.Type()))
	}
}

func (fill filler) slice(value reflect.Value, depth int) {
	value.Set(reflect.MakeSlice(value.Type(), 1+fill.rng.IntN(2), 2))
	for index := range value.Len() {
		if value.Type().Elem().Kind() == reflect.Uint8 {
			value.Index(index).SetUint(uint64(fill.rng.IntN(256)))
		} else {
			fill.fill(value.Index(index), depth)
		}
	}
}

func (fill filler) mapping(value reflect.Value, depth int) {
	value.Set(reflect.MakeMap(value.Type()))
	for range 1 + fill.rng.IntN(2) {
		name, item := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill.fill(name, depth)
		fill.fill(item, depth)
		value.SetMapIndex(name, item)
	}
}

func (fill filler) structure(value reflect.Value, depth int) {
	complete := !fill.seen[value.Type()]
	fill.seen[value.Type()] = true
	for index := range value.NumField() {
		if depth < deepest && (complete || fill.rng.IntN(8) == 0) {
			fill.fill(value.Field(index), depth+1)
		}
	}
}

// special fills what has an encoding of its own.
func (fill filler) special(value reflect.Value, depth int) bool {
	moment := time.Unix(fill.rng.Int64N(4e9), fill.rng.Int64N(1e9))
	switch into := value.Addr().Interface().(type) {
	case *meta.TypeMeta:
	case *meta.Time:
		into.Time = moment
	case *meta.MicroTime:
		into.Time = moment
	case *meta.Duration:
		into.Duration = time.Duration(fill.rng.Int64N(1e15)) >> fill.rng.IntN(50)
	case *meta.FieldsV1:
		into.SetRawBytes([]byte(`{"f:metadata":{"f:labels":{".":{}}}}`))
	case *runtime.RawExtension:
		into.Raw = []byte(`{"nested":{"list":[1,2.5,null,"é"]}}`)
	case *resource.Quantity:
		*into = resource.MustParse([]string{"0", "100m", "1.5Gi", "3", "12e6", "-7"}[fill.rng.IntN(6)])
	case *intstr.IntOrString:
		*into = []intstr.IntOrString{intstr.FromInt32(8080), intstr.FromString("50%"), intstr.FromInt32(-1)}[fill.rng.IntN(3)]
	default:
		return fill.schema(value, depth)
	}
	return true
}

// schema fills what stands for one thing or another in the schemas of custom resources.
func (fill filler) schema(value reflect.Value, depth int) bool {
	inner := apiextensions.JSONSchemaProps{}
	choice := fill.rng.IntN(2) == 0
	switch into := value.Addr().Interface().(type) {
	case *apiextensions.JSON:
		into.Raw = []byte([]string{`{"a":[true]}`, `"text"`, `0`, `null`}[fill.rng.IntN(4)])
	case *apiextensions.JSONSchemaPropsOrArray:
		fill.fill(reflect.ValueOf(&inner).Elem(), depth+4)
		*into = apiextensions.JSONSchemaPropsOrArray{Schema: &inner}
		if choice {
			*into = apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{inner, {}}}
		}
	case *apiextensions.JSONSchemaPropsOrBool:
		into.Allows = choice
		if fill.rng.IntN(2) == 0 {
			fill.fill(reflect.ValueOf(&inner).Elem(), depth+4)
			into.Schema = &inner
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		*into = apiextensions.JSONSchemaPropsOrStringArray{Property: []string{"one", "two"}}
		if choice {
			*into = apiextensions.JSONSchemaPropsOrStringArray{Schema: &inner}
		}
	default:
		return false
	}
	return true
}
