// Package kotsadm sets three replicas for kotsadm's database, the StatefulSet default/kotsadm-rqlite. EKCO changes only
// the number of replicas, and the argument with rqlite's number of members.
package kotsadm

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// The preflights.
const (
	// KotsadmStillThere requires that the StatefulSet is the planned one.
	KotsadmStillThere = "KotsadmStillThere"
	// KotsadmReady requires that all replicas are ready and as requested. It passes until one wait for them has failed.
	KotsadmReady = "KotsadmReady"
)

const scaleTimeout = 30 * time.Second

// New returns the action. readyTimeout is how long new replicas may take before EKCO holds the action with the reasons
// of their pods. EKCO calls changed after a change, to trigger a new read.
func New(objects kube.Objects, readyTimeout time.Duration, changed func()) actions.Definition {
	set := object.Set[struct{}, journal.KotsadmFacts]{
		Object: Object(objects), Changed: changed,
		MissingPart: func(_ journal.Subject, _ struct{}, live journal.KotsadmFacts) string { return missingReason(live) },
		Apply: func(ctx context.Context, of journal.Subject, _ struct{}) (journal.KotsadmFacts, error) {
			return scale(ctx, objects, of.UID)
		},
	}
	return actions.Definition{
		Kind: journal.ActionScaleKotsadm, Noun: "scaling", Expendable: true,
		Plan: plan(set.Object, readyTimeout),
		Steps: map[string]actions.StepDef{
			journal.StepScaleKotsadm: {Step: actions.WithFacts(set)},
			journal.StepAwaitKotsadm: {Step: await{objects}},
		},
		Preflights: map[string]actions.Preflight{
			KotsadmStillThere: set.Object,
			KotsadmReady:      ready{set.Object, objects, changed},
		},
	}
}

// plan makes the change in one step, which locks the storage, because a new replica takes a volume. The wait for the
// replicas is another step without that lock, because it may never end.
func plan(database object.Object[journal.KotsadmFacts], readyTimeout time.Duration) func(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
		before, err := database.Read(ctx, record.Subject)
		if err != nil && !errors.Is(err, kube.ErrNotFound) { // the preflight handles a missing StatefulSet
			return journal.Plan{}, err
		}
		facts, err := json.Marshal(before)
		return journal.Plan{Facts: facts, Steps: []journal.PlannedStep{
			{
				ID: journal.StepScaleKotsadm, Does: journal.StepScaleKotsadm, Preflights: []string{KotsadmStillThere},
				Timeout: journal.Duration(scaleTimeout), Domains: []string{journal.DomainStorage},
			},
			{
				ID: journal.StepAwaitKotsadm, Does: journal.StepAwaitKotsadm, After: []string{journal.StepScaleKotsadm},
				Preflights: []string{KotsadmReady}, Timeout: journal.Duration(readyTimeout), Domains: actions.NoDomains,
			},
		}}, err
	}
}

// await changes nothing: it waits for the StatefulSet controller.
type await struct {
	objects kube.Objects
}

func (s await) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	live, lacks, err := unreadyReason(ctx, s.objects, false)
	if err != nil {
		return actions.Proof{}, err
	}
	if live.UID != step.Action.Subject.UID || !live.Scaled() {
		return actions.Proof{Missing: "another client changed the StatefulSet"}, nil
	}
	return actions.Proof{Done: lacks == "", Missing: lacks}, nil
}

func (await) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }

// ready is the preflight [KotsadmReady]: after one wait has failed, it holds the action with the pods' reasons.
type ready struct {
	object.Object[journal.KotsadmFacts]
	objects kube.Objects
	changed func()
}

func (r ready) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	waited := record.Steps[journal.StepAwaitKotsadm].Failures > 0
	live, lacks, err := unreadyReason(ctx, r.objects, waited)
	if verdict := r.StillThere(record, live, err); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	switch {
	case record.Request.DryRun:
		return actions.Pass() // nothing was changed, so no wait is needed
	case !live.Scaled():
		r.changed()
		return actions.Abandon("another client set its replicas to " + live.Size()).About("reset")
	case lacks != "" && waited:
		return actions.Hold(lacks).About("unready")
	}
	return actions.Pass()
}
