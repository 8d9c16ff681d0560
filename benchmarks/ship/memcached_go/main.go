// Command memcached-operator is examples/memcached in Go, with the manager that kubebuilder scaffolds.
package main

import (
	"crypto/tls"
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	metricsAddress := flag.String("metrics-bind-address", "0", "where metrics are served")
	probeAddress := flag.String("health-probe-bind-address", ":8081", "where probes are answered")
	elects := flag.Bool("leader-elect", false, "let one replica be active at a time")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*metricsAddress, *probeAddress, *elects); err != nil {
		ctrl.Log.Error(err, "the manager ended")
		os.Exit(1)
	}
}

func run(metricsAddress, probeAddress string, elects bool) error {
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme(),
		Metrics: server.Options{
			BindAddress:    metricsAddress,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts:        []func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }},
		},
		HealthProbeBindAddress: probeAddress,
		LeaderElection:         elects,
		LeaderElectionID:       "memcached-operator",
	})
	if err != nil {
		return err
	}
	reconciler := &reconciler{client: manager.GetClient(), scheme: manager.GetScheme()}
	if err := reconciler.setUp(manager); err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func scheme() *runtime.Scheme {
	known := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(known); err != nil {
		panic(err)
	}
	addMemcached(known)
	return known
}
