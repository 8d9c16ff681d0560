"""What `bench_sdk.py` compares: projects of ours and of kubebuilder."""
