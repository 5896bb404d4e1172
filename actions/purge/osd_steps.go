package purge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// findOSDs finds the facts that could not be captured because Ceph did not answer. Its outputs are these facts. It
// changes nothing.
type findOSDs storagePart

func (findOSDs) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }

func (s findOSDs) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	found, err := storagePart(s).findAll(ctx, step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	outputs, err := json.Marshal(found)
	if err != nil {
		return actions.Proof{}, fmt.Errorf("record what was found: %w", err)
	}
	return actions.Proof{Done: true, Outputs: outputs}, nil
}

func (s findOSDs) skips(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	return storagePart(s).untouchedOSDs(ctx, step)
}

// findAll finds the OSDs and, if Rook could not be read, Rook's objects.
func (p storagePart) findAll(ctx context.Context, record journal.ActionRecord) (foundOSDs, error) {
	node, lost, err := lostStorage(record)
	if err != nil {
		return foundOSDs{}, err
	}
	var read *StorageFacts
	if lost.RookUnread != "" {
		if read, err = p.readRook(ctx, record, node); err != nil {
			return foundOSDs{}, err
		}
		if read == nil {
			return foundOSDs{NoRook: true}, nil
		}
	}
	view, err := p.readView(ctx, record)
	switch {
	case err != nil:
		return foundOSDs{}, err
	case view.absent:
		return foundOSDs{NoRook: true}, nil
	}
	if read == nil || view.isReplaced() {
		// Rook's objects with the name of a replacement Node belong to the replacement.
		return p.ownedOSDs(ctx, view)
	}
	view.OSDs = osdFacts(view.tree, deployedOSDs(read.Deployments))
	found, err := p.ownedOSDs(ctx, view)
	found.Deployments, found.Entry = read.Deployments, read.Entry
	return found, err
}

// ownedOSDs returns the captured OSDs that still belong to the node. Unless another node has the node's name, it adds
// the OSDs under the node's CRUSH host that are down and have no Deployment.
func (p storagePart) ownedOSDs(ctx context.Context, view storageView) (foundOSDs, error) {
	var found foundOSDs
	host, hasHost := view.tree.HostOfNode(view.node.hostname())
	var osds []ceph.Ref
	for _, lost := range view.OSDs {
		switch osd, there := view.tree.OSD(lost.ID); {
		case !there:
		case osd.IsOther(lost.Ref), view.onOtherMachine(lost.Ref) != "":
			found.Left = append(found.Left, lost.ID)
		default:
			osds = append(osds, lost.Ref)
		}
	}
	if hasHost {
		found.CrushHost = host.Name
	}
	if hasHost && view.newOwners.crush == "" {
		orphans, err := p.orphanedOSDs(ctx, view.tree, host, view.node, view.refs())
		if err != nil {
			return foundOSDs{}, err
		}
		osds = append(osds, stoppedOSDs(view.tree, orphans)...)
	}
	found.OSDs = osdFacts(view.tree, osds)
	return found, nil
}

// outOSDs marks the OSDs out, and also down if they came up after the preflight. If the node answers, its OSDs still
// run: they are only marked out here, and stopped later.
type outOSDs storagePart

func (s outOSDs) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	view, err := storagePart(s).readView(ctx, step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	for _, osd := range view.remaining() {
		if osd.Exists && osd.In() {
			return actions.Proof{Missing: ceph.Names(osd.ID) + " is still in"}, nil
		}
	}
	return actions.Proof{Done: true}, nil
}

func (s outOSDs) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	view, err := storagePart(s).readView(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	var ids, up []int
	for _, osd := range view.remaining() {
		if osd.Exists {
			ids = append(ids, osd.ID)
		}
		if osd.Exists && osd.Up {
			up = append(up, osd.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	// Mark down only OSDs that came up after the preflight, which required that the OSDs of a lost node are down: Ceph
	// would report that the others already are.
	if len(up) > 0 && !journal.PurgeInputOf(step.Action.Request).Live {
		if err := s.Ceph.Down(ctx, up...); err != nil {
			return nil, err
		}
	}
	return nil, s.Ceph.Out(ctx, ids...)
}

func (s outOSDs) skips(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	return storagePart(s).untouchedOSDs(ctx, step)
}

type waitOSDs struct{ actions.NoEffect }

// waitInput has the wait that was configured when EKCO planned the purge.
type waitInput struct {
	Wait journal.Duration `json:"wait"`
}

func (waitOSDs) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var planned waitInput
	if err := step.Input(&planned); err != nil {
		return actions.Proof{}, err
	}
	until := step.Action.Steps[doesOutOSDs].DoneAt.Add(time.Duration(planned.Wait))
	if time.Now().Before(until) {
		return actions.Proof{Missing: "waiting until " + until.UTC().Format(time.RFC3339)}, nil
	}
	return actions.Proof{Done: true}, nil
}

// purgeOSD removes one captured OSD, and its Deployment if Rook has recreated it.
type purgeOSD storagePart

func (s purgeOSD) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	found, err := s.findOSD(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case found.remains:
		return actions.Proof{Missing: "Ceph still has the OSD"}, nil
	case found.kept != "":
		return actions.Proof{Done: true, Outputs: leftOutput(found.kept)}, nil
	}
	missing, err := storagePart(s).recreatedReason(ctx, found.view, found.captured)
	return actions.Proof{Done: err == nil && missing == "", Missing: missing}, err
}

func (s purgeOSD) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	found, err := s.findOSD(ctx, step)
	if err != nil || found.kept != "" {
		return nil, err
	}
	if found.remains {
		if err := storagePart(s).purgeOneOSD(ctx, step, found.now); err != nil {
			return nil, err
		}
	}
	return nil, storagePart(s).removeRecreated(ctx, found.view, found.captured)
}

// foundOSD is the present state of a captured OSD. kept is the reason if it must not be removed.
type foundOSD struct {
	view     storageView
	captured OSDFacts
	now      ceph.OSD
	kept     string
	remains  bool
}

// findOSD returns the OSD of the step.
func (s purgeOSD) findOSD(ctx context.Context, step actions.StepContext) (found foundOSD, err error) {
	if err := step.Input(&found.captured); err != nil {
		return foundOSD{}, err
	}
	if found.view, err = storagePart(s).readView(ctx, step.Action); err != nil {
		return foundOSD{}, err
	}
	at := slices.IndexFunc(found.view.OSDs, func(o OSDFacts) bool { return o.ID == found.captured.ID })
	switch {
	case found.view.absent:
		return found, nil
	case at < 0:
		found.kept = found.view.whyLeft(found.captured)
		return found, nil
	}
	found.captured = found.view.OSDs[at]
	var why string
	if found.now, why, found.remains = found.view.remains(found.captured); why != "" {
		found.kept = actions.LeftBecause(ceph.Names(found.captured.ID), why)
	}
	return found, nil
}

// whyLeft returns the reason why an OSD does not belong to the node, or no longer does.
func (v storageView) whyLeft(osd OSDFacts) string {
	name := ceph.Names(osd.ID)
	if why, left := v.leftReasons[name]; left {
		return actions.LeftBecause(name, why)
	}
	return name + " no longer belongs to the node, or is gone"
}

func (s purgeOSD) skips(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	return storagePart(s).untouchedOSDs(ctx, step)
}

// purgeOneOSD purges an OSD, unless its id now belongs to another OSD. Ceph refuses while some data may be only on this
// OSD. EKCO overrules the refusal, and records that first, in two cases: a person requested the purge, or Ceph cannot
// recover any more. In the second case other OSDs have all data, but Ceph would refuse forever.
func (p storagePart) purgeOneOSD(ctx context.Context, step actions.StepContext, osd ceph.OSD) error {
	err := p.Ceph.Purge(ctx, osd.Ref, false)
	if errors.Is(err, ceph.ErrBusy) || errors.Is(err, ceph.ErrAgain) {
		why := "a person asked for the purge"
		if !step.Action.Request.Manual { // a person who joined an automatic purge saw no warning
			var stuck bool
			if stuck, why = isStuck(ctx, p.Ceph, step.Action); !stuck {
				return errors.Join(err, errors.New(cmp.Or(why, "Ceph can still recover")))
			}
		}
		if err := step.Note(ctx, map[string]string{"forced": fmt.Sprintf("%v; %s", err, why)}); err != nil {
			return err
		}
		err = p.Ceph.Purge(ctx, osd.Ref, true)
	}
	if errors.Is(err, ceph.ErrOtherOSD) {
		return nil
	}
	return err
}

// purgeFoundOSDs removes the OSDs that EKCO found after it made the plan.
type purgeFoundOSDs storagePart

func (s purgeFoundOSDs) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	osds, err := s.unplannedOSDs(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case len(osds) > 0:
		return actions.Proof{Missing: "Ceph still has " + ceph.Names(osds[0].ID)}, nil
	}
	return actions.Proof{Done: true}, nil
}

// Do implements [actions.Step]. One OSD that cannot be purged does not stop the others.
func (s purgeFoundOSDs) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	osds, err := s.unplannedOSDs(ctx, step)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, osd := range osds {
		failures = append(failures, storagePart(s).purgeOneOSD(ctx, step, osd))
	}
	return nil, errors.Join(failures...)
}

func (s purgeFoundOSDs) skips(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	return storagePart(s).untouchedOSDs(ctx, step)
}

// unplannedOSDs returns the OSDs for which the plan has no other step.
func (s purgeFoundOSDs) unplannedOSDs(ctx context.Context, step actions.StepContext) ([]ceph.OSD, error) {
	facts, err := factsOf(step.Action)
	if err != nil {
		return nil, err
	}
	view, err := storagePart(s).readView(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	captured := facts.Storage.ids()
	return slices.DeleteFunc(view.remaining(), func(o ceph.OSD) bool { return slices.Contains(captured, o.ID) }), nil
}
