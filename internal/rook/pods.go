package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Pods reads and changes settings of Rook's pods: the resources of Ceph's CSI drivers, the placement of the
// MDS, and priority classes. Errors are those of package kube; every call returns kube.ErrNotFound if there is
// no CephCluster, or it is being deleted.
type Pods struct {
	objects kube.Objects
	custom  *Custom
}

// NewPods returns a client of the objects.
func NewPods(objects kube.Objects) *Pods {
	return &Pods{inNamespace{objects}, NewCustom(objects)}
}

// Installed is a Rook that is installed.
type Installed struct {
	Version Version
	// Unknown is why the version is unknown, or "".
	Unknown string
}

// Installed reads the CephCluster and the version of Rook, live.
func (p *Pods) Installed(ctx context.Context) (Installed, error) {
	ref := ResourceRef(journal.RookCluster)
	cluster, err := p.custom.read(ctx, ref)
	if err != nil {
		return Installed{}, err
	}
	if cluster.DeletionTimestamp != nil {
		return Installed{}, fmt.Errorf("%w: %s is being deleted", kube.ErrNotFound, ref)
	}
	version, unknown, err := p.custom.version(ctx)
	return Installed{version, unknown}, err
}

// Read reads the facts of a subject, live.
func (p *Pods) Read(ctx context.Context, of journal.Subject) (journal.RookPodsFacts, error) {
	in, err := p.Installed(ctx)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	return p.ReadIn(ctx, in, of)
}

// ReadIn is Read for a Rook that is known to be installed.
func (p *Pods) ReadIn(ctx context.Context, in Installed, of journal.Subject) (journal.RookPodsFacts, error) {
	object, err := p.object(ctx, of)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	facts := object.facts(in, of)
	if of.Kind == journal.KindCephMDS {
		facts.Hosts, err = p.mdsHosts(ctx, of)
	}
	return facts, err
}

// Change makes the requested change to the subject with that UID, and returns the new facts. It keeps what is
// already as requested. If another client changes the object at the same time, it reads the object again.
func (p *Pods) Change(ctx context.Context, of journal.Subject, input journal.RookPodsInput) (journal.RookPodsFacts, error) {
	in, err := p.Installed(ctx)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	var now journal.RookPodsFacts
	err = kube.Retry(kube.ErrConflict, func() (err error) {
		now, err = p.change(ctx, in, of, input)
		return err
	})
	return now, err
}

func (p *Pods) change(ctx context.Context, in Installed, of journal.Subject, input journal.RookPodsInput) (journal.RookPodsFacts, error) {
	object, err := p.object(ctx, of)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	now := object.facts(in, of)
	if now.UID != of.UID {
		return now, fmt.Errorf("change %s: %w: it has UID %s, not %s; nothing was changed", PodsRef(of), kube.ErrOtherUID, now.UID, of.UID)
	}
	if input.Lacks(of.Kind, now) == "" {
		return now, nil
	}
	if moved := input.Moved(of.Kind, now); moved != "" {
		return now, fmt.Errorf("change %s: %w: %s; nothing was changed", PodsRef(of), kube.ErrConflict, moved)
	}
	raw, err := p.write(ctx, of, object, input)
	return p.changed(in, of, input, raw, err)
}

// write makes the change only in the version that was read.
func (p *Pods) write(ctx context.Context, of journal.Subject, object podsObject, input journal.RookPodsInput) (json.RawMessage, error) {
	ref := PodsRef(of)
	switch of.Kind {
	case journal.RookOperatorConfig.Kind:
		return p.objects.PatchObject(ctx, ref, object.patchCSI(input.Keys))
	case journal.KindCephMDS:
		return p.objects.PatchObject(ctx, ref, object.patchMDS())
	case journal.KindDaemonSet:
		return p.objects.PatchObject(ctx, ref, object.patchPriority(input.Class))
	}
	// kURL's permissions allow no patch of Deployments.
	replacement, err := object.withPriority(ref, input.Class)
	if err != nil {
		return nil, err
	}
	return p.objects.ReplaceObject(ctx, ref, replacement)
}

// changed reads the answer to a change, in which a webhook may have changed the object.
func (p *Pods) changed(in Installed, of journal.Subject, input journal.RookPodsInput, raw json.RawMessage, err error) (journal.RookPodsFacts, error) {
	object, err := decodePods(PodsRef(of), raw, err)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	facts := object.facts(in, of)
	if lacks := input.Lacks(of.Kind, facts); lacks != "" {
		err = fmt.Errorf("change %s: the API server stored something else: %s; look for a webhook that changes it", PodsRef(of), lacks)
	}
	return facts, err
}

// PodsRef returns the reference of the subject's object.
func PodsRef(of journal.Subject) kube.Ref {
	namespace, name, _ := strings.Cut(of.Name, "/")
	ref := kube.Ref{Group: "apps", Version: "v1", Namespace: namespace, Name: name}
	switch of.Kind {
	case journal.RookOperatorConfig.Kind:
		ref.Group, ref.Resource = "", "configmaps"
	case journal.KindCephMDS:
		return ResourceRef(journal.RookPools(journal.KindCephFilesystem, journal.MDSFilesystem(of)))
	case journal.KindDaemonSet:
		ref.Resource = "daemonsets"
	default:
		ref.Resource = "deployments"
	}
	return ref
}

func (p *Pods) object(ctx context.Context, of journal.Subject) (podsObject, error) {
	ref := PodsRef(of)
	raw, err := p.objects.ReadObject(ctx, ref)
	return decodePods(ref, raw, err)
}

func decodePods(ref kube.Ref, raw json.RawMessage, err error) (podsObject, error) {
	read, err := kube.Decode[podsObject](ref, raw, err)
	read.raw = raw
	return read, err
}
