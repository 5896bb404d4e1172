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
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// attempt is one attempt to switch.
type attempt struct {
	*migrator
	step  actions.StepContext
	state journal.MinioCutOver
	// away is set once the Service selected no pods in this attempt.
	away bool
	// versions is the number of versions at the last pass while clients could write, listed how long it takes to list
	// them.
	versions int64
	listed   time.Duration
	// lost is what the last pass could not carry over.
	lost loss
}

func (a *attempt) load() (err error) {
	if a.state, err = outputOf[journal.MinioCutOver](a.step.Action, a.step.Planned.ID); err != nil {
		return err
	}
	caught, err := outputOf[journal.MinioCaughtUp](a.step.Action, journal.StepCatchUpMinio)
	a.versions, a.listed = caught.Versions, time.Duration(caught.Listed)
	return err
}

func (a *attempt) outputs() (json.RawMessage, error) {
	a.state.Disabled = false
	return json.Marshal(a.state)
}

func (a *attempt) note(ctx context.Context) error { return a.step.Note(ctx, a.state) }

var (
	// errInterrupted ends an attempt that had recorded its beginning, and did not begin or was already undone.
	errInterrupted = errors.New("the switch was interrupted")
	// errElsewhere ends an attempt when the Service selects the highly available MinIO, which may not have all data.
	errElsewhere = errors.New("another Kubernetes client made Service minio select ha-minio")
	// errTouched ends an attempt when that may have been so for a while.
	errTouched = errors.New("another Kubernetes client changed the selector of Service minio")
)

// caught is forward with a panic as its error, so that the Service is switched back then, too.
func (a *attempt) caught(ctx context.Context) (err error) {
	defer actions.Catch(a.step.Log, "the switch", &err)
	return a.forward(ctx)
}

// forward makes the switch, or continues one that was interrupted.
func (a *attempt) forward(ctx context.Context) error {
	leads, version, err := a.api.Leads(ctx)
	if err != nil {
		return err
	}
	switched, err := a.switched(ctx, a.state, leads, version)
	switch {
	case err != nil:
		return err
	case switched:
		return errors.Join(a.versioned(ctx), a.endServed(ctx))
	case leads == journal.MinioServiceHA:
		return errElsewhere
	case leads == journal.MinioServiceDisabled && a.state.Disabled:
		if err := a.resume(ctx, version); err != nil {
			return err
		}
	case a.state.Disabled:
		return errInterrupted
	default:
		if err := a.begin(ctx); err != nil {
			return err
		}
	}
	// The time of an interrupted attempt counts, too: clients have been waiting since then.
	ctx, cancel := context.WithTimeout(ctx, a.bound()-time.Since(a.state.DisabledAt))
	defer cancel()
	// From here on a check counts only as long as nobody changes the Service.
	leads, version, err = a.api.Leads(ctx)
	switch {
	case err != nil:
		return err
	case leads != journal.MinioServiceDisabled:
		return fmt.Errorf("another Kubernetes client made Service minio select %s", leads)
	case a.state.Away != "" && version != a.state.Away:
		return errTouched
	}
	a.away, a.state.Away = true, version
	if err := a.disabled(ctx); err != nil {
		return err
	}
	if a.state.Version, err = a.api.Switch(ctx, version); err != nil {
		return err
	}
	return a.endServed(ctx)
}

// bound is how long the Service may select no pods, over all attempts together.
func (a *attempt) bound() time.Duration { return limitFactor * a.limit(a.versions, a.listed) }

// outageError says that the Service selected no pods for too long, or too often, to continue. It counts as a failed
// attempt.
type outageError struct{ since time.Time }

func (e outageError) Error() string {
	return "the switch was interrupted while Service minio selected no pods, since " + words.Stamp(e.since)
}

// resume records that an attempt continues that was interrupted while the Service selected no pods. It does so only
// once: a fault that kills EKCO each time would keep clients out for good.
func (a *attempt) resume(ctx context.Context, version string) error {
	a.away = true
	if a.touched(ctx, journal.MinioServiceDisabled, version) {
		return errTouched
	}
	if a.state.Resumed || !happenedWithin(a.state.DisabledAt, a.bound()) {
		return outageError{a.state.DisabledAt}
	}
	a.state.Resumed = true
	return a.note(ctx)
}

// begin copies the last changes, records that clients are cut off, and makes the Service select no pods.
func (a *attempt) begin(ctx context.Context) error {
	obstacle, err := a.mayBegin(ctx)
	if err != nil {
		return err
	}
	if err := a.unsettled(ctx); err != nil {
		return err
	}
	if !obstacle.unreadable {
		if err := a.before(ctx); err != nil {
			return err
		}
	}
	version, err := a.unchangedVersion(ctx)
	if err != nil {
		return err
	}
	a.state.Listed, a.state.Pods, a.state.Switches, a.state.Unread, a.state.Version, a.state.Fingerprint = false, nil, false, false, "", ""
	a.state.Back, a.state.Away, a.state.Touched = version, "", false
	a.state.Disabled, a.state.DisabledAt, a.state.Resumed = true, time.Now().UTC(), false
	if err := a.note(ctx); err != nil {
		return err
	}
	// The last copy may have taken an hour: cause no outage if the migration was cancelled or paused in between.
	if err := a.step.CheckAgain(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	defer a.changed()
	a.state.Away, err = a.api.Disable(ctx, version)
	return err
}

// unchangedVersion returns the resource version of the Service, which must have selected standalone MinIO all the time.
func (a *attempt) unchangedVersion(ctx context.Context) (version string, err error) {
	known, err := lastSourceVersion(a.step.Action)
	if err != nil {
		return "", err
	}
	leads, version, err := a.api.Leads(ctx)
	switch {
	case err != nil:
		return "", err
	case leads != journal.MinioServiceSingle:
		return "", elsewhereError{leads}
	case known != "" && !a.trail.unchanged(version, known):
		return "", errTouched
	}
	return version, nil
}

// mayBegin repeats the checks of the preflights. A force counts for one cause, and for this attempt only, even if it
// does not need it.
func (a *attempt) mayBegin(ctx context.Context) (obstacle, error) {
	if bypass := a.noBypass(ctx, a.step.Action); bypass.Kind != actions.VerdictPass {
		return obstacle{}, errors.New(bypass.Reason)
	}
	obstacle, err := a.findObstacle(ctx, a.step.Action)
	if err != nil {
		a.state.Forced = ""
		return obstacle, err
	}
	if obstacle.key == "" {
		a.state.Forced = ""
		a.state.Forces++ // a later attempt needs a new force
		return obstacle, nil
	}
	if !a.step.Action.HasForced(MinioSuccessor, obstacle.keyOf(a.state)) {
		return obstacle, errors.New(obstacle.text)
	}
	a.state.Forced = obstacle.key
	a.state.Forces++
	return obstacle, a.note(ctx)
}

// before does what can be done while clients still write.
func (a *attempt) before(ctx context.Context) error {
	both, err := a.open(ctx, a.step.Action)
	if err != nil {
		return err
	}
	defer both.close()
	var lost loss
	var result replica.Result
	var took time.Duration
	err = watched(ctx, func(ctx context.Context) (err error) {
		if lost, result, took, err = (catchUp{a.migrator}).round(ctx, both, a.step); err != nil {
			return err
		}
		refused, err := both.rehearse(ctx, &acting{of: map[string]map[string]string{}})
		lost.settings = append(lost.settings, refused...)
		return err
	}, both.watchService(), watchPolicy(a.step))
	if err != nil {
		return err
	}
	if fast := a.tooFast(result, took, a.listed); fast != "" {
		return errors.New(fast)
	}
	a.versions = result.Seen
	// Versions that a person released may be refused only by the last pass, so they are not among these.
	if was := a.state.Uncarried; len(lost.names()) == 0 && !released(was, was, a.step.Action, MinioCarriedOver) {
		a.state.Uncarried = journal.MinioFound{}
	}
	if err := a.mayLose(lost); err != nil {
		return err
	}
	return a.setAside(ctx, both, result.Kept, lost.kept)
}

// mayLose returns an error unless a person released everything that cannot be carried over: it would be deleted with
// standalone MinIO.
func (a *attempt) mayLose(lost loss) error {
	names := lost.names()
	slices.Sort(names)
	names = slices.Compact(names)
	found := journal.MinioFound{Count: len(names), Names: names, At: time.Now().UTC()}
	if found.Count == 0 || released(found, a.state.Uncarried, a.step.Action, MinioCarriedOver) {
		return nil
	}
	a.state.Uncarried = found
	return &actions.UnfinishedError{Left: uncarriedText(found, a.step.Action), Waits: true}
}

// disabled does what must be done while no client can write: it cuts off the remaining connections, and copies and
// verifies the last writes.
func (a *attempt) disabled(ctx context.Context) error {
	if err := a.list(ctx); err != nil {
		return err
	}
	if a.state.Forced != "" {
		return a.asIs(ctx)
	}
	a.listener.catchUp(ctx) // events that the old pod has not reported before it ends are lost
	pod, err := a.replace(ctx)
	if err != nil {
		return err
	}
	both, err := a.openPod(ctx, pod, a.step.Action)
	if err != nil {
		return err
	}
	defer both.close()
	both = both.disabled(a.state.Away)
	if err := a.same(ctx, both); err != nil {
		return err
	}
	if err := a.stillServes(ctx, pod); err != nil {
		return err
	}
	return a.settle(ctx, both)
}

// list records the pods that clients may be connected to: those that exist once the Service selects no pods.
func (a *attempt) list(ctx context.Context) error {
	if a.state.Listed {
		return nil
	}
	single, err := a.api.Single(ctx)
	if err != nil {
		return err
	}
	if crowded := single.Crowded(); crowded != "" {
		return crowdedError(crowded)
	}
	a.state.Listed = true
	for _, pod := range single.Own() {
		a.state.Pods, a.state.Controller = append(a.state.Pods, pod.UID), pod.Controller
	}
	return a.note(ctx)
}

// asIs copies what the serving pod has, if there is one: a person forced the switch although no other pod can replace
// it.
func (a *attempt) asIs(ctx context.Context) error {
	a.state.Unread = true
	both, err := a.open(ctx, a.step.Action)
	if errors.As(err, new(noSourceError)) || errors.As(err, new(otherSourceError)) {
		return a.settleUnread(ctx)
	}
	if err != nil {
		return err
	}
	defer both.close()
	both = both.disabled(a.state.Away)
	if _, _, err := a.last(ctx, both); err != nil {
		return err
	}
	return a.settle(ctx, both)
}

// versioned records the resource version of the Service after the switch if the answer to that request was lost.
func (a *attempt) versioned(ctx context.Context) error {
	if a.state.Version != "" {
		return nil
	}
	leads, version, err := a.api.Leads(ctx)
	if err == nil && leads == journal.MinioServiceHA {
		a.state.Version = version
	}
	return err
}

// endServed ends the pods that clients may still be connected to, if none was replaced before the switch.
func (a *attempt) endServed(ctx context.Context) error {
	if a.state.Forced == "" {
		return nil
	}
	single, err := a.api.Single(ctx)
	if err != nil {
		return err
	}
	for _, pod := range served(single, a.state) {
		err = errors.Join(err, kube.Deleted(a.api.EndSinglePod(ctx, pod.Name, pod.UID, endGrace)))
	}
	return err
}

// last copies the last writes, and accounts for what it could not copy.
func (a *attempt) last(ctx context.Context, both sides) (loss, replica.Result, error) {
	lost, result, _, err := catchUp{a.unlimited()}.round(ctx, both, a.step)
	if a.lost = lost; err == nil {
		a.state.Fingerprint, err = both.fingerprint(ctx, result.Fingerprint)
	}
	if err == nil {
		err = a.mayLose(lost)
	}
	if err == nil {
		err = a.setAside(ctx, both, result.Kept, lost.kept)
	}
	return lost, result, err
}

// same copies the last writes, and verifies that both sides are the same.
func (a *attempt) same(ctx context.Context, both sides) error {
	lost, result, err := a.last(ctx, both)
	if err != nil {
		return err
	}
	// Only this pass has changed anything since it began.
	report, err := replica.CompareAfter(ctx, both.source, both.target, result, comparing(a.step, 0, result.Seen))
	if err != nil {
		return err
	}
	differ := suspectsOf(report, lost)
	if len(differ) == 0 {
		return nil
	}
	names := make([]string, 0, len(differ))
	for name := range differ {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Errorf("%d objects or settings differ although no client can write: %s", len(names), strings.Join(names[:min(len(names), 5)], ", "))
}

// switches records that the switch comes next, also for an EKCO on another node: it would otherwise not know that EKCO
// switched.
func (a *attempt) switches(ctx context.Context) error {
	a.state.Switches, a.state.Settled = true, true
	return a.step.NoteAhead(ctx, a.state)
}

// settle records that the switch comes next, and sets what acts automatically.
func (a *attempt) settle(ctx context.Context, both sides) error {
	if err := a.switches(ctx); err != nil {
		return err
	}
	warnings, err := replica.Settle(ctx, both.source, both.target)
	if err != nil {
		return err
	}
	return a.mayLoseLast(warnings)
}

// mayLoseLast is mayLose of everything that the switch loses, including the settings that are set last: a person
// releases one list.
func (a *attempt) mayLoseLast(warnings []replica.Warning) error {
	lost := a.lost
	lost.settings = slices.Concat(lost.settings, warnings)
	return a.mayLose(lost)
}
