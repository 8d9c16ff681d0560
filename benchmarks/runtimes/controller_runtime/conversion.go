package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// NextWidget is the second version of ../../webhooks/versions.py.
type NextWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NextWidgetSpec `json:"spec,omitempty"`
	Status WidgetStatus   `json:"status,omitempty"`
}

type NextWidgetSpec struct {
	Size  int               `json:"size,omitempty"`
	Image string            `json:"image,omitempty"`
	Args  []string          `json:"args,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	Ports []Port            `json:"ports,omitempty"`
	Note  string            `json:"note,omitempty"`
}

func (in *NextWidget) DeepCopyObject() runtime.Object {
	var first, copied Widget
	if in.ConvertTo(&first) != nil {
		return nil
	}
	copied = *first.DeepCopy()
	out := &NextWidget{TypeMeta: in.TypeMeta}
	if out.ConvertFrom(&copied) != nil {
		return nil
	}
	return out
}

// Hub marks the version that is stored.
func (*Widget) Hub() {}

// ConvertTo makes the stored version of it.
func (in *NextWidget) ConvertTo(hub conversion.Hub) error {
	out := hub.(*Widget)
	out.ObjectMeta = in.ObjectMeta
	out.Spec = WidgetSpec{
		Replicas: in.Spec.Size, Image: in.Spec.Image, Args: in.Spec.Args,
		Env: in.Spec.Env, Ports: in.Spec.Ports, Note: in.Spec.Note,
	}
	out.Status = in.Status
	return nil
}

// ConvertFrom makes it of the stored version.
func (in *NextWidget) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Widget)
	in.ObjectMeta = from.ObjectMeta
	in.Spec = NextWidgetSpec{
		Size: from.Spec.Replicas, Image: from.Spec.Image, Args: from.Spec.Args,
		Env: from.Spec.Env, Ports: from.Spec.Ports, Note: from.Spec.Note,
	}
	in.Status = from.Status
	return nil
}

func schemeOfBoth() *runtime.Scheme {
	known := scheme()
	next := schema.GroupVersion{Group: groupVersion.Group, Version: "v2"}
	known.AddKnownTypeWithName(next.WithKind("Widget"), &NextWidget{})
	return known
}
