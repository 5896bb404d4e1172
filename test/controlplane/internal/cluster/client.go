package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Client returns a client for many requests at a time, with the identity and server
// of a kubeconfig file.
func Client(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 5000, 10000
	config.UserAgent = "controlplane"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig %s: %w", kubeconfig, err)
	}
	return client, nil
}

// HasDefaultAccount returns an error until the controller manager has created the
// service account that pods in the namespace need.
func HasDefaultAccount(ctx context.Context, client kubernetes.Interface, namespace string) error {
	_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func ensureNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create namespace %s: %w", name, err)
	}
	return nil
}
