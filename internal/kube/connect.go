package kube

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connect returns the configuration for the API server: from the kubeconfig at that path or, if the path is
// empty, from the service account of EKCO's pod. It sends nothing. All of EKCO's clients are made from it, so
// the terms apply to all.
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

// InPod reports whether this process runs in a pod with a service account.
func InPod() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}
