package cluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The demo workload is one Deployment.
const (
	DemoNamespace = "demo"
	DemoName      = "demo"
)

// CreateDemo creates a Deployment whose pods spread over the workers. A
// replacement may go to any worker: with a strict spread, the pods of a lost
// node would stay pending.
func CreateDemo(ctx context.Context, client kubernetes.Interface, pods int, grace time.Duration) error {
	if err := ensureNamespace(ctx, client, DemoNamespace); err != nil {
		return err
	}
	labels := map[string]string{"app": DemoName}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: DemoName, Namespace: DemoNamespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(pods)),
			Selector: selector,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       demoPod(selector, grace),
			},
		},
	}
	_, err := client.AppsV1().Deployments(DemoNamespace).Create(ctx, deployment, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("cannot create deployment %s/%s: %w", DemoNamespace, DemoName, err)
	}
	return nil
}

func demoPod(spread *metav1.LabelSelector, grace time.Duration) corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
		TerminationGracePeriodSeconds: new(int64(grace.Seconds())),
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: controlPlaneLabel, Operator: corev1.NodeSelectorOpDoesNotExist},
					},
				}},
			},
		}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: spread,
		}},
	}
}

// DemoReady returns an error with the number of available pods until all pods of
// the demo workload are available.
func DemoReady(ctx context.Context, client kubernetes.Interface) error {
	d, err := client.AppsV1().Deployments(DemoNamespace).Get(ctx, DemoName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if want := *d.Spec.Replicas; d.Status.AvailableReplicas < want {
		return fmt.Errorf("%d of %d pods of %s/%s are available", d.Status.AvailableReplicas, want, DemoNamespace, DemoName)
	}
	return nil
}
