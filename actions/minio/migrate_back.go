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

// back points the Service back to standalone MinIO, whatever ended the attempt, and also when EKCO is stopping; unless
// EKCO already pointed it to the highly available one.
func (a *attempt) back(ctx context.Context, cause error) (json.RawMessage, error) {
	interrupted := errors.Is(cause, errInterrupted) || errors.Is(cause, errElsewhere) || isElsewhere(cause) || errors.As(cause, new(*actions.UnfinishedError)) || errors.Is(ctx.Err(), context.Canceled)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pointBackTimeout)
	defer cancel()
	leads, err := a.point(ctx)
	defer a.changed()
	switch {
	case err != nil:
		return nil, a.unfinished(fmt.Sprintf("%v; and EKCO cannot tell what Service minio selects: %v", cause, err), true)
	case leads == journal.MinioServiceHA && a.state.Switches && !a.state.Touched:
		if err := errors.Join(a.versioned(ctx), a.endServed(ctx)); err != nil {
			return nil, a.unfinished(fmt.Sprintf("Service minio selects ha-minio; clients may still be connected to standalone MinIO: %v", err), true)
		}
		return a.outputs()
	}
	if !interrupted {
		a.state.FailedAt, a.state.Error = time.Now().UTC(), cause.Error()
		if a.away {
			a.state.Tries++
		}
	}
	a.noteBack(ctx)
	a.takenBack(ctx)
	return nil, a.unfinished(cause.Error()+"; "+selectsText(leads), interrupted || !a.away)
}

// selectsText says what the Service selects.
func selectsText(service journal.MinioService) string {
	switch service {
	case "":
		return "there is no Service minio"
	case journal.MinioServiceSingle:
		return "Service minio selects standalone MinIO"
	}
	return "Service minio selects " + string(service)
}

// unfinished records the state of the attempt. It counts as failed only if the Service selected no pods during it.
func (a *attempt) unfinished(left string, waits bool) error {
	outputs, err := json.Marshal(a.state)
	return errors.Join(err, &actions.UnfinishedError{Left: left, Waits: waits, Outputs: outputs})
}

// takenBack records what ended with the attempt, and what it saw: an EKCO that stops records no failure, and one that
// is killed has no other chance.
func (a *attempt) takenBack(ctx context.Context) {
	a.state.Disabled, a.state.Switches, a.state.Forced = false, false, ""
	if err := a.note(ctx); err != nil {
		a.step.Log.Warn("cannot record yet that the switch was undone", "error", err)
	}
	if err := a.unsettled(ctx); err != nil {
		a.step.Log.Warn("bucket settings on ha-minio that act automatically are still set; the next attempt removes them", "error", err)
	}
}

// point points a Service that selects no pods to standalone MinIO, and returns what it selects then. It retries until
// the time is over.
func (a *attempt) point(ctx context.Context) (leads journal.MinioService, err error) {
	for known := false; ; {
		var version string
		leads, version, err = a.api.Leads(ctx)
		if err == nil && !known { // from here on EKCO may change it
			known, a.state.Touched = true, a.state.Touched || a.touched(ctx, leads, version)
		}
		if err == nil && (leads != journal.MinioServiceDisabled || !a.state.Disabled) {
			return leads, nil // or another client disabled it
		}
		if err == nil {
			a.noteGivenUp(ctx)
			if leads, err = a.pointBack(ctx); err == nil {
				return leads, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(podInterval):
		}
	}
}

// touched reports whether another client changed the Service since EKCO disabled it, or may have: EKCO was away for
// long, and does not know which version it had.
func (a *attempt) touched(ctx context.Context, leads journal.MinioService, version string) bool {
	switch {
	case !a.state.Disabled, leads == journal.MinioServiceInstaller:
		return false // clients have no MinIO then, too
	case leads == journal.MinioServiceDisabled && a.state.Away == "":
		return !happenedWithin(a.state.DisabledAt, a.bound())
	case leads == journal.MinioServiceDisabled:
		return version != a.state.Away
	case leads == journal.MinioServiceSingle: // or EKCO was killed right before it disabled the Service, or pointed it back
		return version != a.state.Back && !a.ours(ctx, version)
	}
	switched, err := a.switched(ctx, a.state, leads, version)
	return !switched || err != nil
}

// noteGivenUp records that the switch is not made, before the Service is pointed back: if it selects the highly available
// MinIO later, EKCO did not do that. It is pointed back even if that cannot be recorded, as clients wait.
func (a *attempt) noteGivenUp(ctx context.Context) {
	if !a.state.Switches {
		return
	}
	a.state.Switches = false
	if err := a.note(ctx); err != nil {
		a.step.Log.Warn("cannot record yet that the switch is being undone", "error", err)
	}
}

// ours reports whether EKCO knows that no other client has changed the selector of the Service.
func (m *migrator) ours(ctx context.Context, version string) bool {
	is, err := m.api.Ours(ctx, version)
	return err == nil && is
}

// pointBack points a Service that selects no pods to standalone MinIO, or, if that is gone, to the highly available
// one. It reads as little as possible: a read that fails keeps clients out.
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

// pointOn is pointBack unless the switch was made: what clients wrote since then is not on standalone MinIO.
func (m *migrator) pointOn(ctx context.Context, record journal.ActionRecord) (to journal.MinioService, err error) {
	if record.Steps[journal.StepCutOverMinio].Done() {
		return journal.MinioServiceHA, m.api.Point(ctx, journal.MinioServiceHA)
	}
	return m.pointBack(ctx)
}

// unsettled removes what a failed switch left on the target: these settings would expire copies and send notifications
// about them.
func (a *attempt) unsettled(ctx context.Context) error {
	if !a.state.Settled {
		return nil
	}
	if err := a.unsettle(ctx); err != nil {
		return err
	}
	a.state.Settled = false
	return nil
}

// unsettle removes settings that act automatically from the target, also those of an earlier migration.
func (m *migrator) unsettle(ctx context.Context) error {
	target, err := m.target(ctx)
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
		for name, idle := range idle {
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

// idle are values with which these settings do nothing. The next pass corrects suspended versioning.
var idle = map[s3.SettingName]string{
	s3.Lifecycle: "", s3.Notification: "", s3.Quota: "",
	s3.ObjectLock: `<ObjectLockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>`,
}

// callOff points a Service that an attempt left disabled to standalone MinIO.
type callOff struct{ *migrator }

// Prove reports a failed read as not done: an error would count as a failure, and after too many of those clients would
// stay cut off.
func (s callOff) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	leads, _, err := s.api.Leads(ctx)
	if err != nil {
		return actions.Proof{Missing: err.Error()}, nil //nolint:nilerr // it is what is missing
	}
	return actions.Proof{Done: leads != journal.MinioServiceDisabled, Missing: "Service minio selects no pods"}, nil
}

// Do is retried for as long as it takes: nothing else would point the Service to a MinIO.
func (s callOff) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	leads, _, err := s.api.Leads(ctx)
	defer s.changed()
	if err != nil {
		return nil, &actions.UnfinishedError{Left: "EKCO cannot tell what Service minio selects: " + err.Error(), Waits: true}
	}
	if leads == journal.MinioServiceDisabled {
		if leads, err = s.pointOn(ctx, step.Action); err != nil {
			return nil, &actions.UnfinishedError{Left: "clients have no MinIO: Service minio selects no pods and cannot be updated yet: " + err.Error(), Waits: true}
		}
	}
	cut, err := outputOf[journal.MinioCutOver](step.Action, journal.StepCutOverMinio)
	if err != nil || !cut.Settled || leads == journal.MinioServiceHA {
		return nil, err
	}
	if err := s.unsettle(ctx); err != nil {
		step.Log.Warn("bucket settings on ha-minio that act automatically are still set; the next migration removes them", "error", err)
	}
	return nil, nil
}
