package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// switchBack points the Service back to standalone MinIO after any failure, and also when EKCO is stopping. It does not
// do so if EKCO already made the Service select the highly available MinIO.
func (a *attempt) switchBack(ctx context.Context, cause error) (json.RawMessage, error) {
	interrupted := errors.Is(cause, errInterrupted) || errors.Is(cause, errElsewhere) || isSelectedElsewhere(cause) || errors.As(cause, new(*actions.UnfinishedError)) || errors.Is(ctx.Err(), context.Canceled)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pointBackTimeout)
	defer cancel()
	selected, err := a.pointBackUntilDone(ctx)
	defer a.changed()
	switch {
	case err != nil:
		return nil, a.unfinishedError(fmt.Sprintf("%v; and EKCO cannot tell what Service minio selects: %v", cause, err), true)
	case selected == journal.MinioServiceHA && a.state.Switches && !a.state.Touched:
		if err := errors.Join(a.recordVersion(ctx), a.endServedPods(ctx)); err != nil {
			return nil, a.unfinishedError(fmt.Sprintf("Service minio selects ha-minio; clients may still be connected to standalone MinIO: %v", err), true)
		}
		return a.outputs()
	}
	if !interrupted {
		a.state.FailedAt, a.state.Error = time.Now().UTC(), cause.Error()
		if a.selectedNoPods {
			a.state.Tries++
		}
	}
	a.noteBack(ctx)
	a.recordUndone(ctx)
	return nil, a.unfinishedError(cause.Error()+"; "+selectsText(selected), interrupted || !a.selectedNoPods)
}

// selectsText returns a message part that describes what the Service selects.
func selectsText(service journal.MinioService) string {
	switch service {
	case "":
		return "there is no Service minio"
	case journal.MinioServiceSingle:
		return "Service minio selects standalone MinIO"
	}
	return "Service minio selects " + string(service)
}

// unfinishedError returns an error with the state of the attempt. If waits is true, the attempt does not count as
// failed.
func (a *attempt) unfinishedError(left string, waits bool) error {
	outputs, err := json.Marshal(a.state)
	return errors.Join(err, &actions.UnfinishedError{Left: left, Waits: waits, Outputs: outputs})
}

// recordUndone records the end and the results of the attempt. It does so at once: an EKCO that stops records no
// failure, and an EKCO that is killed cannot record anything later.
func (a *attempt) recordUndone(ctx context.Context) {
	a.state.Disabled, a.state.Switches, a.state.Forced = false, false, ""
	if err := a.recordState(ctx); err != nil {
		a.step.Log.Warn("cannot record yet that the switch was undone", "error", err)
	}
	if err := a.removeOwnSettings(ctx); err != nil {
		a.step.Log.Warn("bucket settings on ha-minio that act automatically are still set; the next attempt removes them", "error", err)
	}
}

// pointBackUntilDone makes a Service that selects no pods select standalone MinIO again, and returns what the Service
// selects then. It retries until the deadline of ctx.
func (a *attempt) pointBackUntilDone(ctx context.Context) (selected journal.MinioService, err error) {
	for known := false; ; {
		var version string
		selected, version, err = a.api.ServiceTarget(ctx)
		if err == nil && !known { // later changes may be by EKCO itself
			known, a.state.Touched = true, a.state.Touched || a.isServiceTouched(ctx, selected, version)
		}
		if err == nil && (selected != journal.MinioServiceDisabled || !a.state.Disabled) {
			return selected, nil // another client may also have disabled the Service
		}
		if err == nil {
			a.recordGivenUp(ctx)
			if selected, err = a.pointBack(ctx); err == nil {
				return selected, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(podInterval):
		}
	}
}

// isServiceTouched reports whether another client changed the Service, or may have changed it, since EKCO disabled it.
// It also returns true if EKCO was away for long and does not know the version of the Service.
func (a *attempt) isServiceTouched(ctx context.Context, selected journal.MinioService, version string) bool {
	switch {
	case !a.state.Disabled, selected == journal.MinioServiceInstaller:
		return false // clients have no MinIO in this case either
	case selected == journal.MinioServiceDisabled && a.state.Away == "":
		return !happenedWithin(a.state.DisabledAt, a.maxOutage())
	case selected == journal.MinioServiceDisabled:
		return version != a.state.Away
	case selected == journal.MinioServiceSingle: // EKCO may also have been killed right before it disabled the Service, or after it pointed the Service back
		return version != a.state.Back && !a.isOwnChange(ctx, version)
	}
	switched, err := a.hasSwitched(ctx, a.state, selected, version)
	return !switched || err != nil
}

// recordGivenUp records that EKCO will not switch, before EKCO points the Service back: if the Service selects the
// highly available MinIO later, another client did that. If recording fails, EKCO continues, because clients wait.
func (a *attempt) recordGivenUp(ctx context.Context) {
	if !a.state.Switches {
		return
	}
	a.state.Switches = false
	if err := a.recordState(ctx); err != nil {
		a.step.Log.Warn("cannot record yet that the switch is being undone", "error", err)
	}
}

// isOwnChange reports whether EKCO knows that no other client has changed the selector of the Service.
func (m *migrator) isOwnChange(ctx context.Context, version string) bool {
	is, err := m.api.LastSetByEKCO(ctx, version)
	return err == nil && is
}

// pointBack makes a Service that selects no pods select standalone MinIO, or the highly available MinIO if the
// Deployment is gone. It reads as little as possible, because each failed read keeps clients out.
func (m *migrator) pointBack(ctx context.Context) (to journal.MinioService, err error) {
	deployment, err := m.api.Deployment(ctx)
	if err != nil {
		return "", err
	}
	if to = journal.MinioServiceSingle; deployment == "" {
		to = journal.MinioServiceHA
	}
	return to, m.api.Point(ctx, to)
}

// pointAfterAttempt is pointBack, except after a finished switch: standalone MinIO lacks the data that clients wrote
// since then.
func (m *migrator) pointAfterAttempt(ctx context.Context, record journal.ActionRecord) (to journal.MinioService, err error) {
	if record.Steps[journal.StepCutOverMinio].Done() {
		return journal.MinioServiceHA, m.api.Point(ctx, journal.MinioServiceHA)
	}
	return m.pointBack(ctx)
}

// removeOwnSettings removes the settings that a failed switch left on the target. They would expire copies and send
// notifications about copies.
func (a *attempt) removeOwnSettings(ctx context.Context) error {
	if !a.state.Settled {
		return nil
	}
	if err := a.removeActingSettings(ctx); err != nil {
		return err
	}
	a.state.Settled = false
	return nil
}

// removeActingSettings removes all settings that act automatically from the target, including settings that an earlier
// migration left.
func (m *migrator) removeActingSettings(ctx context.Context) error {
	target, err := m.connectTarget(ctx)
	if err != nil {
		return err
	}
	defer target.Close()
	buckets, err := target.Buckets(ctx)
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		have, err := target.Settings(ctx, bucket)
		if err != nil {
			return err
		}
		for name, idle := range idleSettings {
			if have[name] == "" || name == s3.ObjectLock && !strings.Contains(have[name], "<Rule>") {
				continue
			}
			if err := target.Set(ctx, bucket, name, idle); err != nil {
				return fmt.Errorf("remove the %s of bucket %s from ha-minio, where it would act on copies: %w", name, bucket, err)
			}
		}
	}
	return nil
}

// idleSettings has the values that disable the settings by which a server acts on copies. Suspended versioning is not
// one of them, because the next pass enables versioning.
var idleSettings = map[s3.SettingName]string{
	s3.Lifecycle: "", s3.Notification: "", s3.Quota: "",
	s3.ObjectLock: `<ObjectLockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>`,
}

// undoSwitch points a Service that an attempt left disabled to standalone MinIO.
type undoSwitch struct{ *migrator }

// Prove reports a failed read as not done. If it returned an error, that would count as a failure, and after too many
// failures clients would stay cut off.
func (s undoSwitch) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	selected, _, err := s.api.ServiceTarget(ctx)
	if err != nil {
		return actions.Proof{Missing: err.Error()}, nil //nolint:nilerr // the error is the reason why the step is not done
	}
	return actions.Proof{Done: selected != journal.MinioServiceDisabled, Missing: "Service minio selects no pods"}, nil
}

// Do is retried without a limit, because nothing else would make the Service select a MinIO.
func (s undoSwitch) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	selected, _, err := s.api.ServiceTarget(ctx)
	defer s.changed()
	if err != nil {
		return nil, &actions.UnfinishedError{Left: "EKCO cannot tell what Service minio selects: " + err.Error(), Waits: true}
	}
	if selected == journal.MinioServiceDisabled {
		if selected, err = s.pointAfterAttempt(ctx, step.Action); err != nil {
			return nil, &actions.UnfinishedError{Left: "clients have no MinIO: Service minio selects no pods and cannot be updated yet: " + err.Error(), Waits: true}
		}
	}
	cut, err := outputOf[journal.MinioCutOver](step.Action, journal.StepCutOverMinio)
	if err != nil || !cut.Settled || selected == journal.MinioServiceHA {
		return nil, err
	}
	if err := s.removeActingSettings(ctx); err != nil {
		step.Log.Warn("bucket settings on ha-minio that act automatically are still set; the next migration removes them", "error", err)
	}
	return nil, nil
}
