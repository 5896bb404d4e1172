package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Pods reads and changes what Rook gives its pods: the resources of those of Ceph's CSI
// drivers, the placement of the MDS, and priority classes. Errors are those of package kube;
// all of it is kube.ErrNotFound where there is no CephCluster, or one that is being deleted.
type Pods struct {
	objects kube.Objects
	custom  *Custom
}

// NewPods returns a client of the objects.
func NewPods(objects kube.Objects) *Pods {
	return &Pods{inNamespace{objects}, NewCustom(objects)}
}

// Installed is what is known of a Rook that is there.
type Installed struct {
	Version Version
	// Unknown says why the version is not known, "" where it is.
	Unknown string
}

// Installed looks for the CephCluster and for the version of Rook, live.
func (p *Pods) Installed(ctx context.Context) (Installed, error) {
	ref := ResourceRef(journal.RookCluster)
	cluster, err := p.custom.read(ctx, ref)
	if err != nil {
		return Installed{}, err
	}
	if cluster.Metadata.DeletionTimestamp != "" {
		return Installed{}, fmt.Errorf("%w: %s is being deleted", kube.ErrNotFound, ref)
	}
	version, unknown, err := p.custom.version(ctx)
	return Installed{version, unknown}, err
}

// Read reads a thing live.
func (p *Pods) Read(ctx context.Context, of journal.Subject) (journal.RookPodsFacts, error) {
	in, err := p.Installed(ctx)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	return p.ReadIn(ctx, in, of)
}

// ReadIn reads a thing live in a Rook of which it is known that it is there.
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

// Change makes what is asked for of the thing with that UID, and returns what it is then.
// What is already so stays. Somebody else who changes the object meanwhile is no error: it is
// read again.
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
		return now, fmt.Errorf("change %s: %w: it has UID %s, not %s; it was left alone", PodsRef(of), kube.ErrOtherUID, now.UID, of.UID)
	}
	if input.Lacks(of.Kind, now) == "" {
		return now, nil
	}
	if moved := input.Moved(of.Kind, now); moved != "" {
		return now, fmt.Errorf("change %s: %w: %s; it was left alone", PodsRef(of), kube.ErrConflict, moved)
	}
	raw, err := p.write(ctx, of, object, input)
	return p.changed(in, of, input, raw, err)
}

// write makes the change in the object as it was read, and in no other.
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
	// Of Deployments kURL's permissions allow no patch.
	replacement, err := object.withPriority(input.Class)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", ref, err)
	}
	return p.objects.ReplaceObject(ctx, ref, replacement)
}

// changed reads the answer to a change. A webhook can have made something else of it.
func (p *Pods) changed(in Installed, of journal.Subject, input journal.RookPodsInput, raw json.RawMessage, err error) (journal.RookPodsFacts, error) {
	object, err := decodePods(PodsRef(of), raw, err)
	if err != nil {
		return journal.RookPodsFacts{}, err
	}
	facts := object.facts(in, of)
	if lacks := input.Lacks(of.Kind, facts); lacks != "" {
		err = fmt.Errorf("change %s: the API server made something else of it: %s; look for a webhook that changes it", PodsRef(of), lacks)
	}
	return facts, err
}

// PodsRef names the object that a thing is about.
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
	read := podsObject{raw: raw}
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil {
		return podsObject{}, fmt.Errorf("read %s: %w", ref, err)
	}
	return read, nil
}
