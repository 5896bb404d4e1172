package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Resources reads and changes Rook's custom resources. Its errors are errors of package kube.
type Resources interface {
	// ReadResource reads a resource live. It also returns kube.ErrNotFound if the CRD is missing.
	ReadResource(ctx context.Context, of journal.Subject) (journal.RookFacts, error)
	// ChangeResource makes the change and returns the new facts. The object must have the UID of the change. Settings
	// that are already as requested stay as they are. If a number has neither its old nor its new value,
	// ChangeResource returns kube.ErrConflict and changes nothing.
	ChangeResource(ctx context.Context, of journal.Subject, change journal.RookChange) (journal.RookFacts, error)
}

// Custom implements [Resources] in a real cluster.
type Custom struct {
	objects kube.Objects
}

var _ Resources = (*Custom)(nil)

// NewCustom returns a client of the objects.
func NewCustom(objects kube.Objects) *Custom { return &Custom{inNamespace{objects}} }

// resourceNames has the resource name in the API for each kind of custom resource that EKCO knows.
var resourceNames = map[string]string{
	journal.RookCluster.Kind:    "cephclusters",
	journal.KindCephBlockPool:   "cephblockpools",
	journal.KindCephFilesystem:  "cephfilesystems",
	journal.KindCephObjectStore: "cephobjectstores",
}

// ResourceRef names the object of a subject.
func ResourceRef(of journal.Subject) kube.Ref {
	namespace, name, _ := strings.Cut(of.Name, "/")
	return kube.Ref{Group: group, Version: "v1", Resource: resourceNames[of.Kind], Namespace: namespace, Name: name}
}

// OperatorRef names the Deployment of Rook's operator.
func OperatorRef() kube.Ref { return deploymentRef(Operator) }

func (c *Custom) read(ctx context.Context, ref kube.Ref) (resourceObject, error) {
	return kube.Get[resourceObject](ctx, c.objects, ref)
}

// ReadResource implements [Resources].
func (c *Custom) ReadResource(ctx context.Context, of journal.Subject) (journal.RookFacts, error) {
	read, err := c.read(ctx, ResourceRef(of))
	if err != nil {
		return journal.RookFacts{}, err
	}
	return c.addVersion(ctx, of, read)
}

// addVersion adds Rook's version to the facts of the CephCluster.
func (c *Custom) addVersion(ctx context.Context, of journal.Subject, read resourceObject) (journal.RookFacts, error) {
	if of.Kind != journal.RookCluster.Kind {
		return read.facts(Version{}), nil
	}
	version, unknown, err := versionIn(ctx, c.objects)
	if err != nil {
		return journal.RookFacts{}, err
	}
	facts := read.facts(version)
	if facts.Unversioned = unknown; unknown == "" {
		facts.Version = version.String()
	}
	return facts, nil
}

// ChangeResource implements [Resources].
func (c *Custom) ChangeResource(ctx context.Context, of journal.Subject, change journal.RookChange) (journal.RookFacts, error) {
	ref := ResourceRef(of)
	return kube.Change[resourceObject, journal.RookFacts]{
		Ref: ref, UID: of.UID, Lacks: change.Lacks, Moved: change.Moved,
		Facts: func(read *resourceObject) (journal.RookFacts, string, error) {
			facts, err := c.addVersion(ctx, of, *read)
			return facts, string(read.UID), err
		},
		Write: func(_ json.RawMessage, read *resourceObject) (json.RawMessage, error) {
			if len(change.Nodes) > 0 && read.Spec.Storage == nil {
				return nil, fmt.Errorf("change %s: %w: it no longer has a storage section; nothing was changed", ref, kube.ErrConflict)
			}
			return c.objects.PatchObject(ctx, ref, read.patch(change))
		},
	}.Make(ctx, c.objects)
}
