package purge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// removeDeployment removes the Deployment with the captured UID.
type removeDeployment storagePart

func (s removeDeployment) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	_, now, err := s.findDeployment(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case now.kept != "":
		return actions.Proof{Done: true, Outputs: leftOutput(now.kept)}, nil
	case now.there:
		return now.stillExists(), nil
	}
	return actions.Proof{Done: true}, nil
}

func (s removeDeployment) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	captured, now, err := s.findDeployment(ctx, step)
	if err != nil || now.kept != "" {
		return nil, err
	}
	return nil, storagePart(s).removeOSDDeployment(ctx, captured, journal.PurgeInputOf(step.Action.Request).Live)
}

func (s removeDeployment) skips(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	return storagePart(s).untouchedDeployments(ctx, step)
}

func (s removeDeployment) findDeployment(ctx context.Context, step actions.StepContext) (captured rook.OSDDeployment, now foundDeployment, err error) {
	if err := step.Input(&captured); err != nil {
		return captured, foundDeployment{}, err
	}
	view, err := storagePart(s).lookAtRook(ctx, step.Action)
	return captured, view.deployment(captured), err
}

// foundDeployment is the present state of a captured Deployment. kept is the reason if it must not be removed.
type foundDeployment struct {
	now   rook.OSDDeployment
	there bool
	kept  string
}

// deployment returns the present state of a Deployment, because Rook may have bound it to another machine that has the
// disk now.
func (v storageView) deployment(captured rook.OSDDeployment) foundDeployment {
	at := slices.IndexFunc(v.deployments, func(d rook.OSDDeployment) bool { return d.UID == captured.UID })
	if at < 0 {
		return foundDeployment{}
	}
	now := v.deployments[at]
	why := cmp.Or(v.leftReasons[osdName(now)], v.boundToOtherMachine(now), v.onOtherMachine(ceph.Ref{ID: now.OSD, UUID: now.UUID}))
	if why == "" {
		return foundDeployment{now: now, there: true}
	}
	return foundDeployment{now: now, there: true, kept: actions.LeftBecause(osdName(now), why)}
}

// osdName returns the name of the Deployment's OSD, or the name of the Deployment if the OSD is unknown.
func osdName(d rook.OSDDeployment) string {
	if d.OSD == rook.UnknownOSD {
		return "Deployment " + rook.Namespace + "/" + d.Name
	}
	return ceph.Names(d.OSD)
}

// lookAtRook reads the node's remaining objects in Rook without Ceph, because Ceph may not answer. The binding of a
// Deployment decides where its OSD runs.
func (p storagePart) lookAtRook(ctx context.Context, record journal.ActionRecord) (storageView, error) {
	view := storageView{leftReasons: record.Left, live: journal.PurgeInputOf(record.Request).Live}
	var err error
	if view.node, view.StorageFacts, err = lostStorage(record); err != nil {
		return storageView{}, err
	}
	if view.deployments, err = p.allDeployments(ctx, view.node); err != nil {
		return storageView{}, err
	}
	view.newOwners, err = p.newOwners(ctx, view.node)
	return view, err
}

// untouchedDeployments lists the OSDs of captured Deployments that are bound to another machine now.
func (p storagePart) untouchedDeployments(ctx context.Context, step actions.StepContext) (left []journal.ActionLeft, err error) {
	view, err := p.lookAtRook(ctx, step.Action)
	for _, d := range view.Deployments {
		if why := view.onOtherMachine(ceph.Ref{ID: d.OSD, UUID: d.UUID}); why != "" && d.OSD != rook.UnknownOSD {
			left = append(left, journal.ActionLeft{What: osdName(d), Reason: why})
		}
	}
	return left, err
}

// removeOSDDeployment scales a Deployment to zero, so that the OSD ends cleanly, and then deletes it. If the node
// answers, the kubelet ends the OSD cleanly, so EKCO only deletes the Deployment. A cancel then finds the Deployment
// either complete or gone, and Rook recreates it if it is gone.
func (p storagePart) removeOSDDeployment(ctx context.Context, d rook.OSDDeployment, live bool) error {
	if !live {
		if err := kube.IgnoreNotFound(p.Rook.ScaleDown(ctx, d.Name, d.UID)); err != nil {
			return err
		}
	}
	return kube.IgnoreNotFound(p.Rook.DeleteDeployment(ctx, d.Name, d.UID))
}

// stillExists is the proof of a step whose Deployment is not gone.
func (f foundDeployment) stillExists() actions.Proof {
	return actions.Proof{Missing: kube.StillExists("deployment", rook.Namespace, f.now.Name, f.now.Finalizers), NeedsOthers: len(f.now.Finalizers) > 0}
}

// removeFound removes the Deployments that EKCO found after it made the plan.
type removeFound storagePart

func (s removeFound) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	found, kept, err := s.findDeployments(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case len(found) > 0:
		return found[0].stillExists(), nil
	case len(kept) > 0:
		return actions.Proof{Done: true, Outputs: leftOutput(strings.Join(kept, "; "))}, nil
	}
	return actions.Proof{Done: true}, nil
}

// Do implements [actions.Step]. If one removal fails, it continues with the others.
func (s removeFound) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	found, _, err := s.findDeployments(ctx, step)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, d := range found {
		failures = append(failures, storagePart(s).removeOSDDeployment(ctx, d.now, journal.PurgeInputOf(step.Action.Request).Live))
	}
	return nil, errors.Join(failures...)
}

func (s removeFound) skips(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	return storagePart(s).untouchedDeployments(ctx, step)
}

// findDeployments returns the Deployments that must still be removed, and the reasons why others are kept.
func (s removeFound) findDeployments(ctx context.Context, step actions.StepContext) (found []foundDeployment, kept []string, err error) {
	_, lost, err := lostStorage(step.Action)
	if err != nil || len(lost.Deployments) == 0 {
		return nil, nil, err
	}
	view, err := storagePart(s).lookAtRook(ctx, step.Action)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range lost.Deployments {
		switch now := view.deployment(d); {
		case now.kept != "":
			kept = append(kept, now.kept)
		case now.there:
			found = append(found, now)
		}
	}
	return found, kept, nil
}

// removeEntry removes the node from the list of storage nodes in the CephCluster.
type removeEntry storagePart

func (s removeEntry) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	entry, kept, err := s.findEntry(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case kept != "":
		return actions.Proof{Done: true, Outputs: leftOutput(kept)}, nil
	case entry == nil:
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: "the CephCluster still lists the node"}, nil
}

func (s removeEntry) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	entry, kept, err := s.findEntry(ctx, step)
	switch {
	case err != nil || kept != "":
		return nil, err
	case entry == nil:
		return unlistedOutput(step), nil
	}
	removed, err := s.Rook.RemoveStorageNode(ctx, *entry)
	if err != nil {
		return nil, err
	}
	return removedOutput(removed)
}

// unlistedOutput returns an output that another client had removed the node from the list, unless an earlier attempt
// may have removed it.
func unlistedOutput(step actions.StepContext) json.RawMessage {
	if so := step.Action.Steps[step.Planned.ID]; so.Attempts > 1 || so.LastError != "" {
		return nil
	}
	return json.RawMessage(`{"unlisted":true}`)
}

// maxRemovedBytes is the maximum size in bytes of a recorded entry. The plan has the captured entry in any case.
const maxRemovedBytes = 4 << 10

// removedOutput returns an output with the removed entry, which may differ from the captured entry.
func removedOutput(entry json.RawMessage) (json.RawMessage, error) {
	if len(entry) == 0 || len(entry) > maxRemovedBytes {
		return nil, nil
	}
	outputs, err := json.Marshal(map[string]json.RawMessage{"removed": entry})
	if err != nil {
		return nil, fmt.Errorf("record the removed entry of the CephCluster: %w", err)
	}
	return outputs, nil
}

// findEntry returns the node's entry, or nil if EKCO must not remove one. kept is the reason if an entry stays.
func (s removeEntry) findEntry(ctx context.Context, step actions.StepContext) (entry *rook.StorageNode, kept string, err error) {
	node, lost, err := lostStorage(step.Action)
	if err != nil || lost.Entry == nil {
		return nil, "", err
	}
	now, err := s.Rook.StorageNode(ctx, node.names()...)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("look for node %s in the CephCluster: %w", node.Name, err)
	case now.Name == "":
		return nil, "", nil
	case now.UseAllNodes:
		return nil, "useAllNodes is set", nil
	case now.ClusterUID != lost.Entry.ClusterUID:
		return nil, "the CephCluster was replaced", nil
	}
	// Read the list before the Nodes, because a node joins before it is listed.
	newOwners, err := storagePart(s).newOwners(ctx, node)
	if err == nil && newOwners.hostname != "" {
		return nil, fmt.Sprintf("the entry %s in the CephCluster is left alone: %s has that hostname now", now.Name, newOwners.hostname), nil
	}
	return &now, "", err
}
