package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Pods reads and changes settings of Rook's pods: the resources of Ceph's CSI drivers, the placement of MDS pods, and
// priority classes. Its errors are errors of package kube. Every call returns kube.ErrNotFound if there is no
// CephCluster or if the CephCluster is being deleted.
type Pods struct {
	objects kube.Objects
	custom  *Custom
}

// NewPods returns a client of the objects.
func NewPods(objects kube.Objects) *Pods {
	return &Pods{inNamespace{objects}, NewCustom(objects)}
}

// Installed describes an installed Rook.
type Installed struct {
	Version Version
	// Unknown is the reason why the version is unknown, or "".
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
	version, unknown, err := versionIn(ctx, p.objects)
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

// ReadIn is Read if the caller has already called Installed.
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

// Change makes the requested change to the object of the subject, which must have the requested UID. It returns the new
// facts. It does not change settings that are already as requested. If another client changes the object at the same
// time, Change reads the object again and retries.
func (p *Pods) Change(ctx context.Context, of journal.Subject, input journal.RookPodsInput) (journal.RookPodsFacts, error) {
	in, err := p.Installed(ctx)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	return kube.Change[podsObject, journal.RookPodsFacts]{
		Ref: PodsRef(of), UID: of.UID,
		Facts: func(read *podsObject) (journal.RookPodsFacts, string, error) {
			facts := read.facts(in, of)
			return facts, facts.UID, nil
		},
		Lacks: func(now journal.RookPodsFacts) string { return input.Lacks(of.Kind, now) },
		Moved: func(now journal.RookPodsFacts) string { return input.Moved(of.Kind, now) },
		Write: func(raw json.RawMessage, read *podsObject) (json.RawMessage, error) {
			return p.write(ctx, of, raw, *read, input)
		},
	}.Make(ctx, p.objects)
}

// write makes the change. It fails if the object has another version than raw.
func (p *Pods) write(ctx context.Context, of journal.Subject, raw json.RawMessage, object podsObject, input journal.RookPodsInput) (json.RawMessage, error) {
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
	replacement, err := withPriority(ref, raw, input.Class)
	if err != nil {
		return nil, err
	}
	return p.objects.ReplaceObject(ctx, ref, replacement)
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
	return kube.Get[podsObject](ctx, p.objects, PodsRef(of))
}
