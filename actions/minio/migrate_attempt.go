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
	// selectedNoPods is true once the Service selected no pods in this attempt.
	selectedNoPods bool
	// versions is the number of versions in the last pass while clients could write. listed is how long it takes to
	// list them.
	versions int64
	listed   time.Duration
	// lost lists the data that the last pass could not copy.
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

func (a *attempt) recordState(ctx context.Context) error { return a.step.Note(ctx, a.state) }

var (
	// errInterrupted ends an attempt that was recorded as begun, but had not disabled the Service or was already
	// undone.
	errInterrupted = errors.New("the switch was interrupted")
	// errElsewhere ends an attempt if the Service selects the highly available MinIO, which may lack some data.
	errElsewhere = errors.New("another Kubernetes client made Service minio select ha-minio")
	// errTouched ends an attempt if the Service may have selected other pods for a while.
	errTouched = errors.New("another Kubernetes client changed the selector of Service minio")
)

// makeSwitchCatchingPanic calls makeSwitch and turns a panic into an error, so that the Service is switched back after
// a panic, too.
func (a *attempt) makeSwitchCatchingPanic(ctx context.Context) (err error) {
	defer actions.Catch(a.step.Log, "the switch", &err)
	return a.makeSwitch(ctx)
}

// makeSwitch makes the switch, or continues an interrupted switch.
func (a *attempt) makeSwitch(ctx context.Context) error {
	selected, version, err := a.api.ServiceTarget(ctx)
	if err != nil {
		return err
	}
	switched, err := a.hasSwitched(ctx, a.state, selected, version)
	switch {
	case err != nil:
		return err
	case switched:
		return errors.Join(a.recordVersion(ctx), a.endServedPods(ctx))
	case selected == journal.MinioServiceHA:
		return errElsewhere
	case selected == journal.MinioServiceDisabled && a.state.Disabled:
		if err := a.resume(ctx, version); err != nil {
			return err
		}
	case a.state.Disabled:
		return errInterrupted
	default:
		if err := a.beginSwitch(ctx); err != nil {
			return err
		}
	}
	// The limit includes the time since an interrupted attempt began: clients have been waiting since then.
	ctx, cancel := context.WithTimeout(ctx, a.maxOutage()-time.Since(a.state.DisabledAt))
	defer cancel()
	// From here on, a check is valid only as long as no other client changes the Service.
	selected, version, err = a.api.ServiceTarget(ctx)
	switch {
	case err != nil:
		return err
	case selected != journal.MinioServiceDisabled:
		return fmt.Errorf("another Kubernetes client made Service minio select %s", selected)
	case a.state.Away != "" && version != a.state.Away:
		return errTouched
	}
	a.selectedNoPods, a.state.Away = true, version
	if err := a.finishWhileDisabled(ctx); err != nil {
		return err
	}
	if a.state.Version, err = a.api.Switch(ctx, version); err != nil {
		return err
	}
	return a.endServedPods(ctx)
}

// maxOutage returns how long the Service may select no pods, including earlier runs of this attempt.
func (a *attempt) maxOutage() time.Duration { return limitFactor * a.limit(a.versions, a.listed) }

// outageError reports that EKCO must not continue because the Service selected no pods for too long, or EKCO was
// already interrupted twice. This counts as a failed attempt.
type outageError struct{ since time.Time }

func (e outageError) Error() string {
	return "the switch was interrupted while Service minio selected no pods, since " + words.Stamp(e.since)
}

// resume records that EKCO continues an attempt that was interrupted while the Service selected no pods. It allows this
// only once, because a fault that always kills EKCO would otherwise cut clients off forever.
func (a *attempt) resume(ctx context.Context, version string) error {
	a.selectedNoPods = true
	if a.isServiceTouched(ctx, journal.MinioServiceDisabled, version) {
		return errTouched
	}
	if a.state.Resumed || !happenedWithin(a.state.DisabledAt, a.maxOutage()) {
		return outageError{a.state.DisabledAt}
	}
	a.state.Resumed = true
	return a.recordState(ctx)
}

// beginSwitch copies the last changes, records that clients are cut off, and makes the Service select no pods.
func (a *attempt) beginSwitch(ctx context.Context) error {
	obstacle, err := a.mayBegin(ctx)
	if err != nil {
		return err
	}
	if err := a.removeOwnSettings(ctx); err != nil {
		return err
	}
	if !obstacle.unreadable {
		if err := a.copyWhileServing(ctx); err != nil {
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
	if err := a.recordState(ctx); err != nil {
		return err
	}
	// The last copy may have taken an hour, so check for a cancel or a pause before clients lose MinIO.
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

// unchangedVersion returns the resource version of the Service. It returns an error if the Service may have selected
// other pods than standalone MinIO since the last recorded version.
func (a *attempt) unchangedVersion(ctx context.Context) (version string, err error) {
	known, err := lastSourceVersion(a.step.Action)
	if err != nil {
		return "", err
	}
	selected, version, err := a.api.ServiceTarget(ctx)
	switch {
	case err != nil:
		return "", err
	case selected != journal.MinioServiceSingle:
		return "", elsewhereError{selected}
	case known != "" && !a.trail.isUnchanged(version, known):
		return "", errTouched
	}
	return version, nil
}

// mayBegin repeats the checks of the preflights. A force is valid for one cause and for this attempt only, even if the
// attempt does not need it.
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
	return obstacle, a.recordState(ctx)
}

// copyWhileServing copies and checks everything that is possible while clients still write.
func (a *attempt) copyWhileServing(ctx context.Context) error {
	both, err := a.open(ctx, a.step.Action)
	if err != nil {
		return err
	}
	defer both.close()
	var lost loss
	var result replica.Result
	var took time.Duration
	err = runWatched(ctx, func(ctx context.Context) (err error) {
		if lost, result, took, err = (catchUp{a.migrator}).makePass(ctx, both, a.step); err != nil {
			return err
		}
		refused, err := both.rehearseSettings(ctx, &actingSettings{of: map[string]map[string]string{}})
		lost.settings = append(lost.settings, refused...)
		return err
	}, both.watchService(), watchPolicy(a.step))
	if err != nil {
		return err
	}
	if fast := a.tooFastReason(result, took, a.listed); fast != "" {
		return errors.New(fast)
	}
	a.versions = result.Seen
	// Keep a list that a person released: this pass need not list versions that only the last pass refuses.
	if was := a.state.Uncarried; len(lost.names()) == 0 && !isReleased(was, was, a.step.Action, MinioCarriedOver) {
		a.state.Uncarried = journal.MinioFound{}
	}
	if err := a.requireReleased(lost); err != nil {
		return err
	}
	return a.setAside(ctx, both, result.Kept, lost.kept)
}

// requireReleased returns an error unless a person released all data that cannot be copied: EKCO would delete that data
// with standalone MinIO.
func (a *attempt) requireReleased(lost loss) error {
	names := lost.names()
	slices.Sort(names)
	names = slices.Compact(names)
	found := journal.MinioFound{Count: len(names), Names: names, At: time.Now().UTC()}
	if found.Count == 0 || isReleased(found, a.state.Uncarried, a.step.Action, MinioCarriedOver) {
		return nil
	}
	a.state.Uncarried = found
	return &actions.UnfinishedError{Left: uncarriedText(found, a.step.Action), Waits: true}
}

// finishWhileDisabled runs while no client can write: it cuts off the remaining connections, then copies and verifies
// the last writes.
func (a *attempt) finishWhileDisabled(ctx context.Context) error {
	if err := a.recordServingPods(ctx); err != nil {
		return err
	}
	if a.state.Forced != "" {
		return a.copyWithoutReplacement(ctx)
	}
	a.listener.catchUp(ctx) // events that the old pod does not send before it ends are lost
	pod, err := a.replacePod(ctx)
	if err != nil {
		return err
	}
	both, err := a.openPod(ctx, pod, a.step.Action)
	if err != nil {
		return err
	}
	defer both.close()
	both = both.expectDisabled(a.state.Away)
	if err := a.copyAndVerify(ctx, both); err != nil {
		return err
	}
	if err := a.requireStillServes(ctx, pod); err != nil {
		return err
	}
	return a.applyActingSettings(ctx, both)
}

// recordServingPods records the pods that existed when the Service began to select no pods: clients may still be
// connected to them.
func (a *attempt) recordServingPods(ctx context.Context) error {
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
	return a.recordState(ctx)
}

// copyWithoutReplacement copies the data of the serving pod, if there is one. It runs if a person forced the switch
// although no other pod can replace that pod.
func (a *attempt) copyWithoutReplacement(ctx context.Context) error {
	a.state.Unread = true
	both, err := a.open(ctx, a.step.Action)
	if errors.As(err, new(noSourceError)) || errors.As(err, new(otherSourceError)) {
		return a.applyRecordedSettings(ctx)
	}
	if err != nil {
		return err
	}
	defer both.close()
	both = both.expectDisabled(a.state.Away)
	if _, _, err := a.copyLastWrites(ctx, both); err != nil {
		return err
	}
	return a.applyActingSettings(ctx, both)
}

// recordVersion records the resource version of the Service after the switch, if EKCO did not get the answer to the
// switch request.
func (a *attempt) recordVersion(ctx context.Context) error {
	if a.state.Version != "" {
		return nil
	}
	selected, version, err := a.api.ServiceTarget(ctx)
	if err == nil && selected == journal.MinioServiceHA {
		a.state.Version = version
	}
	return err
}

// endServedPods deletes the pods to which clients may still be connected, if the attempt did not replace them before
// the switch.
func (a *attempt) endServedPods(ctx context.Context) error {
	if a.state.Forced == "" {
		return nil
	}
	single, err := a.api.Single(ctx)
	if err != nil {
		return err
	}
	for _, pod := range servedPods(single, a.state) {
		err = errors.Join(err, kube.IgnoreNotFound(a.api.EndSinglePod(ctx, pod.Name, pod.UID, endGrace)))
	}
	return err
}

// copyLastWrites copies the last writes, and lists the data that it could not copy.
func (a *attempt) copyLastWrites(ctx context.Context, both sides) (loss, replica.Result, error) {
	lost, result, _, err := catchUp{a.withoutBandwidthLimit()}.makePass(ctx, both, a.step)
	if a.lost = lost; err == nil {
		a.state.Fingerprint, err = both.fingerprint(ctx, result.Fingerprint)
	}
	if err == nil {
		err = a.requireReleased(lost)
	}
	if err == nil {
		err = a.setAside(ctx, both, result.Kept, lost.kept)
	}
	return lost, result, err
}

// copyAndVerify copies the last writes, and verifies that both sides have the same data.
func (a *attempt) copyAndVerify(ctx context.Context, both sides) error {
	lost, result, err := a.copyLastWrites(ctx, both)
	if err != nil {
		return err
	}
	// Nothing but this pass has changed data since the pass began.
	report, err := replica.CompareAfter(ctx, both.source, both.target, result, compareOptions(a.step, 0, result.Seen))
	if err != nil {
		return err
	}
	differ := namedDifferences(report, lost)
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

// recordSwitch records before the switch that it comes next: an EKCO on another node must know that this EKCO switched.
func (a *attempt) recordSwitch(ctx context.Context) error {
	a.state.Switches, a.state.Settled = true, true
	return a.step.NoteAhead(ctx, a.state)
}

// applyActingSettings records that the switch comes next, and then copies the settings that act automatically.
func (a *attempt) applyActingSettings(ctx context.Context, both sides) error {
	if err := a.recordSwitch(ctx); err != nil {
		return err
	}
	warnings, err := replica.Settle(ctx, both.source, both.target)
	if err != nil {
		return err
	}
	return a.requireAllReleased(warnings)
}

// requireAllReleased is requireReleased for everything that the switch loses, including the settings that are set last,
// so that a person has to release only one list.
func (a *attempt) requireAllReleased(warnings []replica.Warning) error {
	lost := a.lost
	lost.settings = slices.Concat(lost.settings, warnings)
	return a.requireReleased(lost)
}
