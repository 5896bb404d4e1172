package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Resources reads and changes Rook's custom resources. EKCO may get and patch only those whose names it knows.
// Errors are those of package kube.
type Resources interface {
	// ReadResource reads a resource live. It returns kube.ErrNotFound also if the CRD is missing.
	ReadResource(ctx context.Context, of journal.Subject) (journal.RookFacts, error)
	// ChangeResource makes the change in the object with that UID, and returns the new facts. It keeps what is
	// already as requested. It returns kube.ErrConflict and changes nothing if a number has neither its old nor
	// its new value.
	ChangeResource(ctx context.Context, of journal.Subject, change journal.RookChange) (journal.RookFacts, error)
}

// Custom is the [Resources] of a real cluster.
type Custom struct {
	objects kube.Objects
}

var _ Resources = (*Custom)(nil)

// NewCustom returns a client of the objects.
func NewCustom(objects kube.Objects) *Custom { return &Custom{inNamespace{objects}} }

// plurals are the kinds of custom resource that EKCO knows, as the API names them.
var plurals = map[string]string{
	journal.RookCluster.Kind:    "cephclusters",
	journal.KindCephBlockPool:   "cephblockpools",
	journal.KindCephFilesystem:  "cephfilesystems",
	journal.KindCephObjectStore: "cephobjectstores",
}

// ResourceRef names the object of a subject.
func ResourceRef(of journal.Subject) kube.Ref {
	namespace, name, _ := strings.Cut(of.Name, "/")
	return kube.Ref{Group: group, Version: "v1", Resource: plurals[of.Kind], Namespace: namespace, Name: name}
}

// OperatorRef names the Deployment of Rook's operator.
func OperatorRef() kube.Ref {
	return kube.Ref{Group: "apps", Version: "v1", Resource: "deployments", Namespace: Namespace, Name: Operator}
}

func (c *Custom) read(ctx context.Context, ref kube.Ref) (resourceObject, error) {
	raw, err := c.objects.ReadObject(ctx, ref)
	return decodeResource(ref, raw, err)
}

func decodeResource(ref kube.Ref, raw json.RawMessage, err error) (resourceObject, error) {
	var read resourceObject
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil {
		return resourceObject{}, fmt.Errorf("read %s: %w", ref, err)
	}
	return read, nil
}

// ReadResource implements [Resources].
func (c *Custom) ReadResource(ctx context.Context, of journal.Subject) (journal.RookFacts, error) {
	read, err := c.read(ctx, ResourceRef(of))
	if err != nil {
		return journal.RookFacts{}, err
	}
	return c.complete(ctx, of, read)
}

// complete adds Rook's version to the facts of the CephCluster.
func (c *Custom) complete(ctx context.Context, of journal.Subject, read resourceObject) (journal.RookFacts, error) {
	if of.Kind != journal.RookCluster.Kind {
		return read.facts(Version{}), nil
	}
	version, unknown, err := c.version(ctx)
	if err != nil {
		return journal.RookFacts{}, err
	}
	facts := read.facts(version)
	if facts.Unversioned = unknown; unknown == "" {
		facts.Version = version.String()
	}
	return facts, nil
}

// version returns the version of Rook's operator, or why it is unknown.
func (c *Custom) version(ctx context.Context) (version Version, unknown string, err error) {
	raw, err := c.objects.ReadObject(ctx, OperatorRef())
	var operator deployment
	if err == nil {
		err = json.Unmarshal(raw, &operator)
	}
	switch sentinel := kube.Sentinel(err); {
	case errors.Is(sentinel, kube.ErrNotFound), errors.Is(sentinel, kube.ErrForbidden):
		return Version{}, "Rook's version is unknown: " + err.Error(), nil
	case err != nil:
		return Version{}, "", fmt.Errorf("read %s: %w", OperatorRef(), err)
	}
	version, known := versionOf(operator.image(Operator))
	if !known {
		return Version{}, noVersion(operator.image(Operator)), nil
	}
	return version, "", nil
}

// ChangeResource implements [Resources].
func (c *Custom) ChangeResource(ctx context.Context, of journal.Subject, change journal.RookChange) (journal.RookFacts, error) {
	var facts journal.RookFacts
	err := kube.Retry(kube.ErrConflict, func() (err error) {
		facts, err = c.changeResource(ctx, of, change)
		return err
	})
	return facts, err
}

func (c *Custom) changeResource(ctx context.Context, of journal.Subject, change journal.RookChange) (journal.RookFacts, error) {
	ref := ResourceRef(of)
	now, err := c.read(ctx, ref)
	if err != nil {
		return journal.RookFacts{}, err
	}
	facts, err := c.complete(ctx, of, now)
	if err != nil {
		return journal.RookFacts{}, err
	}
	if err := mayChange(ref, of, now, facts, change); err != nil || change.Lacks(facts) == "" {
		return facts, err
	}
	raw, err := c.objects.PatchObject(ctx, ref, now.patch(change))
	return c.changed(ctx, of, change, raw, err)
}

// mayChange returns an error if the object was replaced or has changed.
func mayChange(ref kube.Ref, of journal.Subject, now resourceObject, facts journal.RookFacts, change journal.RookChange) error {
	switch {
	case now.Metadata.UID != of.UID:
		return fmt.Errorf("change %s: %w: it has UID %s, not %s; nothing was changed", ref, kube.ErrOtherUID, now.Metadata.UID, of.UID)
	case change.Moved(facts) != "":
		return fmt.Errorf("change %s: %w: another client changed it: %s; nothing was changed", ref, kube.ErrConflict, change.Moved(facts))
	case len(change.Nodes) > 0 && now.Spec.Storage == nil:
		return fmt.Errorf("change %s: %w: it no longer has a storage section; nothing was changed", ref, kube.ErrConflict)
	}
	return nil
}

// changed reads the answer to a patch, in which a webhook may have changed the object.
func (c *Custom) changed(ctx context.Context, of journal.Subject, change journal.RookChange, raw json.RawMessage, err error) (journal.RookFacts, error) {
	now, err := decodeResource(ResourceRef(of), raw, err)
	if err != nil {
		return journal.RookFacts{}, err
	}
	facts, err := c.complete(ctx, of, now)
	if lacks := change.Lacks(facts); err == nil && lacks != "" {
		err = fmt.Errorf("change %s: the API server stored something else: %s; look for a webhook that changes %s", ResourceRef(of), lacks, plurals[of.Kind])
	}
	return facts, err
}
