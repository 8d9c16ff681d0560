package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

// Widget is the kind of ../../widgets.py.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Replicas int               `json:"replicas,omitempty"`
	Image    string            `json:"image,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Ports    []Port            `json:"ports,omitempty"`
	Note     string            `json:"note,omitempty"`
}

type Port struct {
	Name     string `json:"name"`
	Number   int    `json:"number"`
	Protocol string `json:"protocol,omitempty"`
}

type WidgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Phase              string             `json:"phase,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (in *Widget) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopy is what controller-gen would generate.
func (in *Widget) DeepCopy() *Widget {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.deepCopyInto(&out.Spec)
	in.Status.deepCopyInto(&out.Status)
	return &out
}

func (in *WidgetSpec) deepCopyInto(out *WidgetSpec) {
	if in.Args != nil {
		out.Args = make([]string, len(in.Args))
		copy(out.Args, in.Args)
	}
	if in.Env != nil {
		out.Env = make(map[string]string, len(in.Env))
		for key, value := range in.Env {
			out.Env[key] = value
		}
	}
	if in.Ports != nil {
		out.Ports = make([]Port, len(in.Ports))
		copy(out.Ports, in.Ports)
	}
}

func (in *WidgetStatus) deepCopyInto(out *WidgetStatus) {
	if in.Conditions != nil {
		out.Conditions = make([]metav1.Condition, len(in.Conditions))
		for index := range in.Conditions {
			in.Conditions[index].DeepCopyInto(&out.Conditions[index])
		}
	}
}

func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for index := range in.Items {
		out.Items = append(out.Items, *in.Items[index].DeepCopy())
	}
	return out
}
