// Command controller-runtime is the peer in Go: one controller of Widgets, tuned as its users tune it.
//
// It is called like every worker, with the job as its argument; see ../job.py.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func main() {
	flag.Parse()
	crlog.SetLogger(logr.Discard())
	if flag.Arg(0) == "webhook" {
		log.Fatal(serveWebhooks())
	}
	job := newJob(flag.Arg(0))
	if err := serve(job); err != nil {
		log.Fatal(err)
	}
}

// serve runs until the job ends the process.
func serve(job *job) error {
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme(),
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cacheOptions(),
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: job.workers}).
		Complete(&reconciler{client: manager.GetClient(), job: job})
	if err != nil {
		return err
	}
	return manager.Start(context.Background())
}

// cacheOptions are the defaults, or with BENCH_TUNED those of somebody who counts memory.
func cacheOptions() cache.Options {
	if os.Getenv("BENCH_TUNED") == "" {
		return cache.Options{}
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
}

type reconciler struct {
	client client.Client
	job    *job
}

// Reconcile reads the widget from the cache and does what the job asks for.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	begun := time.Now()
	var widget Widget
	if err := r.client.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.job.name == "write" && widget.Status.Phase != r.job.phase {
		if err := r.write(ctx, &widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.job.reconciled(request.Name, widget.Spec.Note, begun)
	return ctrl.Result{}, nil
}

// write replaces the whole status: a patch costs this client more CPU and is no faster.
func (r *reconciler) write(ctx context.Context, widget *Widget) error {
	widget.Status.Phase = r.job.phase
	widget.Status.ObservedGeneration = widget.Generation
	return r.client.Status().Update(ctx, widget)
}

func scheme() *runtime.Scheme {
	known := runtime.NewScheme()
	known.AddKnownTypes(groupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(known, groupVersion)
	return known
}

// say writes one line that the harness reads.
func say(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
}

// peakMB is the peak of resident memory, as every worker reads it.
func peakMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); err == nil {
			return kilobytes / 1024
		}
	}
	log.Fatal("expected VmHWM in /proc/self/status")
	return 0
}
