package kube

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connect returns how to reach the API server: by the kubeconfig at that path,
// or, when the path is empty, as the service account of the pod EKCO runs in.
// It sends nothing. Every client of EKCO's is made from what it returns, and so
// keeps to the terms.
func Connect(kubeconfig string, terms Terms) (*rest.Config, error) {
	config, err := reach(kubeconfig)
	if err != nil {
		return nil, err
	}
	terms.Bind(config)
	return config, nil
}

func reach(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("connect to the Kubernetes API: %w; outside of a pod give --kubeconfig", err)
		}
		if err != nil {
			return nil, fmt.Errorf("connect to the Kubernetes API as the pod's service account: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

// InPod reports whether this process runs in a pod whose service account can ask
// the cluster that the pod is part of.
func InPod() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}
