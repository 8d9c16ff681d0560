package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "cache.example.com", Version: "v1alpha1"}

// Memcached is a set of memcached pods.
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemcachedSpec   `json:"spec,omitempty"`
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedSpec says how many pods to run.
type MemcachedSpec struct {
	Size int32 `json:"size,omitempty"`
}

// MemcachedStatus has the names of the pods.
type MemcachedStatus struct {
	ObservedGeneration int64    `json:"observedGeneration,omitempty"`
	Nodes              []string `json:"nodes,omitempty"`
}

// MemcachedList is a list of them.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}

// DeepCopyObject is what a generator would write.
func (in *Memcached) DeepCopyObject() runtime.Object {
	out := new(Memcached)
	in.deepCopyInto(out)
	return out
}

// DeepCopyObject is what a generator would write.
func (in *MemcachedList) DeepCopyObject() runtime.Object {
	out := &MemcachedList{TypeMeta: in.TypeMeta, Items: make([]Memcached, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for number := range in.Items {
		in.Items[number].deepCopyInto(&out.Items[number])
	}
	return out
}

func (in *Memcached) deepCopyInto(out *Memcached) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Nodes = append([]string(nil), in.Status.Nodes...)
}

func addMemcached(known *runtime.Scheme) {
	known.AddKnownTypes(groupVersion, &Memcached{}, &MemcachedList{})
	metav1.AddToGroupVersion(known, groupVersion)
}
