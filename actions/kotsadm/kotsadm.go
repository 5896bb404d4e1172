// Package kotsadm gives kotsadm's database its three replicas.
package kotsadm

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kotsadm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// The preflights.
const (
	// KotsadmStillThere: the StatefulSet is the one that was planned for.
	KotsadmStillThere = "KotsadmStillThere"
	// KotsadmReady: all replicas are ready and as requested, or the action has not waited for them yet.
	KotsadmReady = "KotsadmReady"
)

const scaleTimeout = 30 * time.Second

// New returns the action. readyTimeout is how long new replicas may take before the action is held with the
// reasons of their pods. changed is called after a change, to trigger a recheck.
func New(api kotsadm.API, readyTimeout time.Duration, changed func()) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionScaleKotsadm, Noun: "scaling", Expendable: true,
		Plan: plan(api, readyTimeout),
		Steps: map[string]actions.StepDef{
			journal.StepScaleKotsadm: {Step: scale(api, changed)},
			journal.StepAwaitKotsadm: {Step: await{api}},
		},
		Preflights: map[string]actions.Preflight{
			KotsadmStillThere: of(api),
			KotsadmReady:      ready{of(api), api, changed},
		},
	}
}

// plan makes the change in one step, and only that step locks the storage: a new replica takes a volume, and
// its copy of the data. The wait for the replicas may last forever.
func plan(api kotsadm.API, readyTimeout time.Duration) func(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return func(ctx context.Context, _ journal.ActionRecord) (journal.Plan, error) {
		before, err := api.Read(ctx)
		if err != nil && !errors.Is(err, kube.ErrNotFound) { // the preflight handles that
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

func of(api kotsadm.API) object.Object[journal.KotsadmFacts] {
	return object.Object[journal.KotsadmFacts]{
		Noun: "StatefulSet", UID: func(facts journal.KotsadmFacts) string { return facts.UID },
		Read: func(ctx context.Context, _ journal.Subject) (journal.KotsadmFacts, error) { return api.Read(ctx) },
	}
}

// scale is a single update.
func scale(api kotsadm.API, changed func()) actions.Step {
	return object.Set[journal.KotsadmFacts]{
		Object: of(api), Changed: changed,
		Lacks: func(_ actions.StepContext, live journal.KotsadmFacts) (string, error) {
			return kotsadm.Lacks(live), nil
		},
		Apply: func(ctx context.Context, step actions.StepContext) (journal.KotsadmFacts, error) {
			return api.Scale(ctx, step.Action.Subject.UID)
		},
	}
}

// await has no effect: it waits for the StatefulSet controller.
type await struct {
	api kotsadm.API
}

func (s await) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	live, lacks, err := s.api.Unready(ctx, false)
	if err != nil {
		return actions.Proof{}, err
	}
	if live.UID != step.Action.Subject.UID || !live.Scaled() {
		return actions.Proof{Missing: "another client changed the StatefulSet"}, nil
	}
	return actions.Proof{Done: lacks == "", Missing: lacks}, nil
}

func (await) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }

// ready holds the action after it has waited once without success, with the pods' reasons.
type ready struct {
	object.Object[journal.KotsadmFacts]
	api     kotsadm.API
	changed func()
}

func (r ready) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	waited := record.Steps[journal.StepAwaitKotsadm].Failures > 0
	live, lacks, err := r.api.Unready(ctx, waited)
	if verdict := r.StillThere(record, live, err); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	switch {
	case record.Request.DryRun:
		return actions.Pass() // nothing was changed, so there is nothing to wait for
	case !live.Scaled():
		r.changed()
		return actions.Abandon("another client set its replicas to " + live.Size()).About("reset")
	case lacks != "" && waited:
		return actions.Hold(lacks).About("unready")
	}
	return actions.Pass()
}
