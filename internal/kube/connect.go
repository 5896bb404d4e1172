package kube

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connect returns the configuration for the API server. It reads the kubeconfig at the path or, if the path is empty,
// uses the service account of EKCO's pod. It sends no request. All of EKCO's clients use this configuration, so the
// terms apply to all of them.
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
