package rook

import (
	"context"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// The label of the Deployments and pods of OSDs.
const (
	OSDLabel = "app"
	OSDApp   = "rook-ceph-osd"
)

// The labels of Rook's OSDs.
const (
	osdIDLabel     = "ceph-osd-id"
	hostnameOfNode = "kubernetes.io/hostname"
	osdUUIDEnv     = "ROOK_OSD_UUID"
)

// imageOf returns the image of the named container, or of the first container.
func imageOf(d *appsv1.Deployment, container string) string {
	containers := d.Spec.Template.Spec.Containers
	for _, candidate := range containers {
		if candidate.Name == container {
			return candidate.Image
		}
	}
	if len(containers) > 0 {
		return containers[0].Image
	}
	return ""
}

// OSDDeployments implements [API].
func (c *Client) OSDDeployments(ctx context.Context) ([]OSDDeployment, error) {
	list, err := kube.List[appsv1.Deployment](ctx, c.objects, deploymentRef(""), OSDLabel, OSDApp)
	switch {
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var found []OSDDeployment
	for i := range list {
		found = append(found, osdDeployment(&list[i]))
	}
	slices.SortFunc(found, func(a, b OSDDeployment) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// osdUUID returns the UUID that Rook passes to the OSD.
func osdUUID(d *appsv1.Deployment) string {
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == osdUUIDEnv && variable.Value != "" {
				return variable.Value
			}
		}
	}
	return ""
}

func osdDeployment(d *appsv1.Deployment) OSDDeployment {
	// Without spec.replicas, a Deployment has one replica.
	osd := OSDDeployment{
		Name: d.Name, UID: string(d.UID), OSD: osdIDOf(d.Labels), UUID: osdUUID(d),
		Hostname: d.Spec.Template.Spec.NodeSelector[hostnameOfNode], Replicas: 1, Finalizers: kube.DelayedBy(d.ObjectMeta),
	}
	if d.Spec.Replicas != nil {
		osd.Replicas = int(*d.Spec.Replicas)
	}
	return osd
}

// osdIDOf returns the id of the OSD in an object's labels, or UnknownOSD.
func osdIDOf(labels map[string]string) int {
	id, err := strconv.ParseUint(labels[osdIDLabel], 10, 31)
	if err != nil {
		return UnknownOSD
	}
	return int(id)
}
