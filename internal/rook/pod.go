package rook

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// The apps whose pods have ceph. Rook's operator has it in all versions, but since 1.4 its credentials are not
// where the ceph program looks for them.
const (
	toolsApp    = "rook-ceph-tools"
	operatorApp = Operator
)

// pod is the part of a Pod that EKCO reads.
type pod struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// usable reports whether an exec can succeed. The phase is not enough: on a lost node it stays Running, and
// only the conditions show that the pod's state is unknown.
func (p pod) usable() bool {
	if p.Metadata.DeletionTimestamp != nil || p.Status.Phase != "Running" {
		return false
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}

// appOf returns the app whose pods have ceph. An unknown version is probably a new one.
func appOf(version Version) string {
	if version.Known && !version.AtLeast(1, 4, 0) {
		return operatorApp
	}
	return toolsApp
}

// ToolsPod implements [API]. It returns the newest usable pod.
func (c *Client) ToolsPod(ctx context.Context, version Version) (Pod, error) {
	app := appOf(version)
	var list struct {
		Items []pod `json:"items"`
	}
	if err := c.get(ctx, pods, "", "app="+app, &list); err != nil {
		return Pod{}, err
	}
	usable := slices.DeleteFunc(list.Items, func(p pod) bool { return !p.usable() })
	if len(usable) == 0 {
		return Pod{}, fmt.Errorf("%w: none of %d pods with label app=%s in namespace %s is running and ready; "+
			"look at them with kubectl -n %[4]s describe pods -l app=%[3]s, or start one with kubectl -n %[4]s scale deployment %[3]s --replicas=1",
			ErrNoToolsPod, len(list.Items), app, Namespace)
	}
	newest := slices.MaxFunc(usable, func(a, b pod) int {
		return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp)
	})
	return Pod{Name: newest.Metadata.Name, Container: app}, nil
}

// ended reports whether no container of the pod runs, or will run.
func (p pod) ended() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// OSDPods implements [API].
func (c *Client) OSDPods(ctx context.Context, node string) ([]OSDPod, error) {
	var list struct {
		Items []pod `json:"items"`
	}
	err := c.get(ctx, pods, "", osdSelector, &list)
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var found []OSDPod
	for _, p := range list.Items {
		if p.Spec.NodeName == node && !p.ended() {
			found = append(found, OSDPod{Name: p.Metadata.Name, OSD: p.Metadata.osd()})
		}
	}
	slices.SortFunc(found, func(a, b OSDPod) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}
