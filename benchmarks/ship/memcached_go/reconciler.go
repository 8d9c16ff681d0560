package main

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

const finalizer = "cache.example.com/cleanup"

type reconciler struct {
	client client.Client
	scheme *runtime.Scheme
}

func (r *reconciler) setUp(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&Memcached{}).
		Owns(&appsv1.Deployment{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(memcachedOf)).
		Complete(r)
}

// memcachedOf maps a pod to the Memcached that its label names.
func memcachedOf(_ context.Context, pod client.Object) []ctrl.Request {
	name := pod.GetLabels()["memcached"]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}}}
}

// Reconcile keeps a Deployment with as many pods as the Memcached asks for, and the names of the pods in its status.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var memcached Memcached
	if err := r.client.Get(ctx, request.NamespacedName, &memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !memcached.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&memcached, finalizer) {
			return ctrl.Result{}, r.client.Update(ctx, &memcached)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&memcached, finalizer) {
		if err := r.client.Update(ctx, &memcached); err != nil {
			return ctrl.Result{}, err
		}
	}
	wanted := deployment(&memcached)
	found := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: memcached.Name, Namespace: memcached.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, found, func() error {
		found.Labels = wanted.Labels
		found.Spec.Replicas = wanted.Spec.Replicas
		if found.CreationTimestamp.IsZero() {
			found.Spec = wanted.Spec
		}
		return controllerutil.SetControllerReference(&memcached, found, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &memcached)
}

// report writes the names of the pods, if they changed.
func (r *reconciler) report(ctx context.Context, memcached *Memcached) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(memcached.Namespace), client.MatchingLabels(selector(memcached))); err != nil {
		return err
	}
	names := make([]string, 0, len(pods.Items))
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	if slices.Equal(names, memcached.Status.Nodes) && memcached.Status.ObservedGeneration == memcached.Generation {
		return nil
	}
	memcached.Status = MemcachedStatus{ObservedGeneration: memcached.Generation, Nodes: names}
	return r.client.Status().Update(ctx, memcached)
}

func selector(memcached *Memcached) map[string]string {
	return map[string]string{"app": "memcached", "memcached": memcached.Name}
}

// deployment is the desired one.
func deployment(memcached *Memcached) *appsv1.Deployment {
	labels := selector(memcached)
	container := corev1.Container{
		Name:  "memcached",
		Image: "memcached:1.6-alpine",
		Ports: []corev1.ContainerPort{{ContainerPort: 11211}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(11211)}},
			PeriodSeconds: 1,
		},
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &memcached.Spec.Size,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
			},
		},
	}
}
