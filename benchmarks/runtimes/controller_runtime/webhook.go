package main

import (
	"context"
	"errors"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// serveWebhooks serves the webhooks of ../../webhooks, with the certificate in BENCH_CERTIFICATES.
func serveWebhooks() error {
	server := webhook.NewServer(webhook.Options{
		Host:    "127.0.0.1",
		Port:    number("BENCH_PORT"),
		CertDir: os.Getenv("BENCH_CERTIFICATES"),
	})
	server.Register("/validate", admission.WithValidator(scheme(), validator{}))
	server.Register("/mutate", admission.WithDefaulter(scheme(), defaulter{}))
	server.Register("/convert", conversion.NewWebhookHandler(schemeOfBoth(), conversion.NewRegistry()))
	return server.Start(context.Background())
}

type validator struct{}

func (validator) ValidateCreate(_ context.Context, widget *Widget) (admission.Warnings, error) {
	return nil, check(widget)
}

func (validator) ValidateUpdate(_ context.Context, _, widget *Widget) (admission.Warnings, error) {
	return nil, check(widget)
}

func (validator) ValidateDelete(context.Context, *Widget) (admission.Warnings, error) {
	return nil, nil
}

func check(widget *Widget) error {
	if widget.Spec.Replicas > 100 {
		return errors.New("spec.replicas: must be at most 100")
	}
	if len(widget.Spec.Ports) == 0 {
		return errors.New("spec.ports: must not be empty")
	}
	return nil
}

type defaulter struct{}

func (defaulter) Default(_ context.Context, widget *Widget) error {
	if widget.Labels == nil {
		widget.Labels = map[string]string{}
	}
	widget.Labels["mutated"] = "yes"
	if widget.Spec.Image == "" {
		widget.Spec.Image = "registry.example.com/team/default:1.0.0"
	}
	return nil
}
