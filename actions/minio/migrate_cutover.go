package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// limits is how many times the limit the switch may take.
	limits = 3
	// endGrace is what the old pod has to end, backTime what the way back has.
	endGrace = 5 * time.Second
	backTime = 10 * time.Second
	// podLook is how often the next pod is looked for.
	podLook = 250 * time.Millisecond
)

// cutOver has the Service lead to the highly available MinIO once that has everything.
// Writers are cut off for as long as it takes: the Service leads nowhere, and the pod that
// holds their connections is replaced by one that only EKCO can reach. Unless it comes to
// its end, the Service leads to the single MinIO again before Do returns.
//
// Once the Service leads to the highly available one there is no way back, and nothing is
// copied any more.
type cutOver struct{ *migrator }

var _ actions.UrgentStep = cutOver{}

// Urgent implements [actions.UrgentStep]: while the Service leads nowhere nobody can write.
func (cutOver) Urgent(step actions.StepContext) bool {
	var state journal.MinioCutOver
	_, err := step.Output(step.Planned.ID, &state)
	return err == nil && state.Disabled
}

// Prove reports whether the Service leads there. While nobody knows, it does not.
func (s cutOver) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	leads, _, err := s.api.Leads(ctx)
	if err != nil && s.Urgent(step) {
		return actions.Proof{Missing: err.Error()}, nil
	}
	return actions.Proof{
		Done: err == nil && leads == journal.MinioServiceHA, Missing: fmt.Sprintf("Service minio leads to %s", leads),
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

func (s cutOver) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	attempt := &attempt{migrator: s.migrator, step: step}
	err := attempt.load()
	if err == nil {
		err = attempt.forward(ctx)
	}
	if err == nil {
		s.changed()
		return attempt.outputs()
	}
	return attempt.back(ctx, err)
}

// attempt is one try to switch.
type attempt struct {
	*migrator
	step  actions.StepContext
	state journal.MinioCutOver
	// told is what is on record as not to be carried.
	told     []string
	versions int64
}

func (a *attempt) load() (err error) {
	if a.state, err = outputOf[journal.MinioCutOver](a.step.Action, a.step.Planned.ID); err != nil {
		return err
	}
	if a.told, err = notCarried(a.step.Action); err != nil {
		return err
	}
	caught, err := outputOf[journal.MinioCaughtUp](a.step.Action, journal.StepCatchUpMinio)
	a.versions = caught.Versions
	return err
}

func (a *attempt) outputs() (json.RawMessage, error) {
	a.state.Disabled = false
	return json.Marshal(a.state)
}

// errInterrupted is what an attempt comes to that had put on record that it begins, and did
// not.
var errInterrupted = errors.New("the switch was interrupted before the Service led nowhere, or after it led to the single MinIO again")

// forward makes the switch, also one that was interrupted.
func (a *attempt) forward(ctx context.Context) error {
	leads, _, err := a.api.Leads(ctx)
	if err != nil {
		return err
	}
	forced := a.step.Action.HasForced(MinioSuccessor, keySuccessor)
	switch {
	case leads == journal.MinioServiceHA:
		return nil
	case leads == journal.MinioServiceDisabled && a.state.Disabled:
	case a.state.Disabled:
		return errInterrupted
	default:
		if err := a.begin(ctx, forced); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limits*a.limit(a.versions))
	defer cancel()
	// What is looked at from here on counts only as long as nobody touches the Service.
	leads, version, err := a.api.Leads(ctx)
	switch {
	case err != nil:
		return err
	case leads != journal.MinioServiceDisabled:
		return fmt.Errorf("somebody else has Service minio lead to %s", leads)
	}
	if err := a.disabled(ctx, forced); err != nil {
		return err
	}
	return a.api.Switch(ctx, version)
}

// begin catches up once more, puts on record which pod is replaced, and has the Service lead
// nowhere.
func (a *attempt) begin(ctx context.Context, forced bool) error {
	both, err := a.open(ctx)
	if absent := (noSourceError{}); forced && errors.As(err, &absent) {
		both, err = sides{}, nil
	} else if err == nil {
		defer both.close()
		err = a.before(ctx, both, forced)
	}
	if err != nil {
		return err
	}
	a.state.Disabled, a.state.Pod, a.state.Controller = true, both.pod.UID, both.pod.Controller
	if err := a.step.Note(ctx, a.state); err != nil {
		return err
	}
	defer a.changed()
	return a.api.Disable(ctx)
}

// before does what need not be done while clients wait.
func (a *attempt) before(ctx context.Context, both sides, forced bool) error {
	lost, result, took, err := catchUp{a.migrator}.round(ctx, both, a.step)
	switch limit := a.limit(result.Seen); {
	case err != nil:
		return err
	case took > limit:
		return errors.New(tooFast(result, took, limit))
	}
	a.versions = result.Seen
	if err := a.isTold(lost.names()); err != nil || forced {
		return err
	}
	lacks, err := a.api.Successor(ctx, both.pod)
	if err == nil && lacks != "" {
		err = fmt.Errorf("no other pod would start in the place of %s: %s", both.pod.Name, lacks)
	}
	return err
}

// isTold returns an error if something cannot be carried that is not on record as that: it
// is, before the next attempt.
func (a *attempt) isTold(names []string) error {
	var untold []string
	for _, name := range names {
		if !slices.Contains(a.told, name) {
			untold = append(untold, name)
		}
	}
	if len(untold) == 0 {
		return nil
	}
	a.state.NotCarried = append(slices.Clone(a.state.NotCarried), untold...)
	return fmt.Errorf("what cannot be carried over is put on record first: %s", strings.Join(untold, "; "))
}

// disabled does what must be done while nobody can write: other connections are cut off,
// and what was written last is copied and looked at.
func (a *attempt) disabled(ctx context.Context, forced bool) error {
	if forced {
		return a.asIs(ctx)
	}
	pod, err := a.replace(ctx)
	if err != nil {
		return err
	}
	both, err := a.openPod(ctx, pod)
	if err != nil {
		return err
	}
	defer both.close()
	if err := a.same(ctx, both); err != nil {
		return err
	}
	return a.settle(ctx, both)
}

// asIs copies what can be had from the pod that serves, if one does: somebody went past
// that no other can take its place.
func (a *attempt) asIs(ctx context.Context) error {
	both, err := a.open(ctx)
	if absent := (noSourceError{}); errors.As(err, &absent) {
		return nil
	}
	if err != nil {
		return err
	}
	defer both.close()
	if _, _, _, err := (catchUp{a.migrator}).round(ctx, both, a.step); err != nil {
		return err
	}
	return a.settle(ctx, both)
}

// replace ends the pod that clients have connections to, and waits for another one of the
// same controller that answers.
func (a *attempt) replace(ctx context.Context) (minio.SinglePod, error) {
	for lacks := ""; ; {
		pod, lacking, err := a.look(ctx)
		switch {
		case err == nil && lacking == "":
			return pod, nil
		case err == nil:
			lacks = lacking
		case ctx.Err() == nil || lacks == "": // a look that was cut short says nothing
			lacks = err.Error()
		}
		select {
		case <-ctx.Done():
			return minio.SinglePod{}, fmt.Errorf("wait for another pod in the place of the one that served: %s: %w", lacks, ctx.Err())
		case <-time.After(podLook):
		}
	}
}

// look is [attempt.successor] of what there is now.
func (a *attempt) look(ctx context.Context) (minio.SinglePod, string, error) {
	single, err := a.api.Single(ctx)
	if err != nil {
		return minio.SinglePod{}, "", err
	}
	return a.successor(ctx, single)
}

// successor returns another pod that answers, or says what is lacking. The one that served
// is asked to end.
func (a *attempt) successor(ctx context.Context, single minio.Single) (pod minio.SinglePod, lacks string, err error) {
	lacks = "there is no other pod yet"
	for _, one := range single.Pods {
		switch {
		case one.UID == a.state.Pod && one.State == journal.MinioPodEnds:
			return pod, "pod " + one.Name + " has not ended yet", nil
		case one.UID == a.state.Pod:
			return pod, "pod " + one.Name + " has not ended yet", kube.Deleted(a.api.EndSinglePod(ctx, one.Name, one.UID, endGrace))
		case one.Controller != a.state.Controller:
			lacks = "pod " + one.Name + " is of another controller"
		case !one.Serves():
			lacks = fmt.Sprintf("pod %s is not ready: %s", one.Name, one.Unready)
		default:
			pod = one
		}
	}
	if pod.UID == "" {
		return pod, lacks, nil
	}
	both, err := a.openPod(ctx, pod)
	if err != nil {
		return pod, "", err
	}
	defer both.close()
	_, err = both.source.Buckets(ctx)
	return pod, "", err
}

// same copies what was written last, and looks whether all is the same.
func (a *attempt) same(ctx context.Context, both sides) error {
	lost, _, _, err := catchUp{a.migrator}.round(ctx, both, a.step)
	if err != nil {
		return err
	}
	if err := a.isTold(lost.names()); err != nil {
		return err
	}
	report, err := replica.Compare(ctx, both.source, both.target, 0)
	if err != nil {
		return err
	}
	differ, err := both.suspects(ctx, report, lost)
	if err != nil || len(differ) == 0 {
		return err
	}
	names := make([]string, 0, len(differ))
	for name := range differ {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Errorf("%d objects or settings differ though nobody writes: %s", len(names), strings.Join(names[:min(len(names), 5)], ", "))
}

// settle sets what acts by itself.
func (a *attempt) settle(ctx context.Context, both sides) error {
	warnings, err := replica.Settle(ctx, both.source, both.target)
	if err != nil {
		return err
	}
	return a.isTold(loss{settings: warnings}.names())
}

// back has the Service lead to the single MinIO again, whatever ended the attempt, and also
// when EKCO is stopping; unless it leads to the highly available one already.
func (a *attempt) back(ctx context.Context, cause error) (json.RawMessage, error) {
	interrupted := errors.Is(cause, errInterrupted) || ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	defer cancel()
	switched, err := a.point(ctx)
	defer a.changed()
	if switched {
		return a.outputs()
	}
	if err != nil {
		outputs, encodeErr := json.Marshal(a.state)
		left := fmt.Sprintf("%v; and whether Service minio leads somewhere is not known: %v", cause, err)
		return nil, errors.Join(encodeErr, &actions.UnfinishedError{Left: left, Waits: true, Outputs: outputs})
	}
	if !interrupted {
		a.state.FailedAt, a.state.Error = time.Now().UTC(), cause.Error()
	}
	outputs, err := a.outputs()
	if err != nil {
		return nil, err
	}
	left := cause.Error() + "; Service minio leads to the single MinIO"
	return nil, &actions.UnfinishedError{Left: left, Waits: interrupted, Outputs: outputs}
}

// point has a Service that leads nowhere lead to the single MinIO. It is tried until the
// time is over.
func (a *attempt) point(ctx context.Context) (switched bool, err error) {
	for {
		leads, _, err := a.api.Leads(ctx)
		switch {
		case err == nil && leads == journal.MinioServiceHA:
			return true, nil
		case err == nil && leads != journal.MinioServiceDisabled:
			return false, nil
		case err == nil && !a.state.Disabled:
			return false, nil // somebody else disabled it
		case err == nil:
			if err = a.api.Point(ctx, journal.MinioServiceSingle); err == nil {
				return false, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(podLook):
		}
	}
}

// callOff has a Service that an attempt left disabled lead to the single MinIO again.
type callOff struct{ *migrator }

func (s callOff) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	leads, _, err := s.api.Leads(ctx)
	return actions.Proof{Done: err == nil && leads != journal.MinioServiceDisabled, Missing: "Service minio leads nowhere"}, err
}

func (s callOff) Do(ctx context.Context, _ actions.StepContext) (json.RawMessage, error) {
	leads, _, err := s.api.Leads(ctx)
	if err != nil || leads != journal.MinioServiceDisabled {
		return nil, err
	}
	defer s.changed()
	return nil, s.api.Point(ctx, journal.MinioServiceSingle)
}
