package rook

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// The label of the Deployments and pods of OSDs.
const (
	OSDLabel = "app"
	OSDApp   = "rook-ceph-osd"
)

// The labels and selectors of Rook's OSDs.
const (
	osdSelector    = OSDLabel + "=" + OSDApp
	osdIDLabel     = "ceph-osd-id"
	hostnameOfNode = "kubernetes.io/hostname"
	osdUUIDEnv     = "ROOK_OSD_UUID"
)

// deployment is the part of a Deployment that EKCO reads.
type deployment struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Replicas *int `json:"replicas"`
		Template struct {
			Spec struct {
				NodeSelector map[string]string `json:"nodeSelector"`
				Containers   []container       `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	Env   []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

// image returns the image of this container, or of the first one.
func (d deployment) image(container string) string {
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
	var list struct {
		Items []deployment `json:"items"`
	}
	err := c.get(ctx, deployments, "", osdSelector, &list)
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var found []OSDDeployment
	for _, item := range list.Items {
		found = append(found, item.osd())
	}
	slices.SortFunc(found, func(a, b OSDDeployment) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// osdUUID returns the UUID that Rook passes to the OSD.
func (d deployment) osdUUID() string {
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == osdUUIDEnv && variable.Value != "" {
				return variable.Value
			}
		}
	}
	return ""
}

func (d deployment) osd() OSDDeployment {
	// Without spec.replicas, a Deployment has one.
	osd := OSDDeployment{
		Name: d.Metadata.Name, UID: d.Metadata.UID, OSD: osdIn(d.Metadata.Labels), UUID: d.osdUUID(),
		Hostname: d.Spec.Template.Spec.NodeSelector[hostnameOfNode], Replicas: 1,
	}
	if d.Spec.Replicas != nil {
		osd.Replicas = *d.Spec.Replicas
	}
	return osd
}

// osdIn returns the id of the OSD in an object's labels, or UnknownOSD.
func osdIn(labels map[string]string) int {
	id, err := strconv.ParseUint(labels[osdIDLabel], 10, 31)
	if err != nil {
		return UnknownOSD
	}
	return int(id)
}
