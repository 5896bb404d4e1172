package rook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/replicatedhq/ekco/test/kurl"
)

// daemons has the names of a filesystem's MDS: one serves, and one is a standby.
var daemons = []string{"a", "b"}

// placeMDS creates the Deployments of the MDS of each filesystem that has a placement, and places their pods
// accordingly.
func (o *operator) placeMDS(ctx context.Context, found resources) error {
	var failures []error
	for _, fs := range found.shared {
		apart := fs.Spec.MetadataServer.Placement.PodAntiAffinity
		if apart == nil || fs.Metadata.DeletionTimestamp != "" {
			continue
		}
		for _, daemon := range daemons {
			failures = append(failures, o.placeOne(ctx, kurl.MDSDeployment(fs.Metadata.Name, daemon), apart))
		}
	}
	return errors.Join(failures...)
}

// placeOne creates a Deployment, or changes only the affinity of its pods.
func (o *operator) placeOne(ctx context.Context, manifest, apart map[string]any) error {
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(text); err != nil {
		return err
	}
	at := o.client.Resource(deployments).Namespace(kurl.RookNamespace)
	affinity := []string{"spec", "template", "spec", "affinity", "podAntiAffinity"}
	now, err := at.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if err := unstructured.SetNestedMap(wanted.Object, apart, affinity...); err != nil {
			return err
		}
		_, err = at.Create(ctx, wanted, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	}
	has, _, err := unstructured.NestedMap(now.Object, affinity...)
	if err != nil || same(has, apart) {
		return err
	}
	if err := unstructured.SetNestedMap(now.Object, apart, affinity...); err != nil {
		return err
	}
	_, err = at.Update(ctx, now, metav1.UpdateOptions{})
	return err
}

// same compares values by their JSON, in which a number has one type.
func same(a, b any) bool {
	text, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && bytes.Equal(text, other)
}
