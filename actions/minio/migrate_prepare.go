package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// prepare creates the buckets, users and policies. Its record is its proof, because EKCO compares both sides after the
// copy anyway.
type prepare struct{ *migrator }

func (s prepare) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var left journal.MinioPrepared
	_, err := step.Output(step.Planned.ID, &left)
	return actions.Proof{Done: left.Done, Missing: "buckets, users and policies are not created yet", Outputs: step.Action.Steps[step.Planned.ID].Outputs}, err
}

func (s prepare) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	both, err := s.open(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	defer both.close()
	selected, version, err := s.api.ServiceTarget(ctx)
	if err == nil && selected != journal.MinioServiceSingle {
		err = elsewhereError{selected}
	}
	if err != nil {
		return nil, asWait(err)
	}
	both.target.service.expect(selected, version)
	foreign, err := s.releasedForeignData(ctx, both, step)
	if err != nil {
		return nil, err
	}
	if err := step.CheckAgain(ctx); err != nil {
		return nil, err // the comparison may have taken long
	}
	if err := runWatched(ctx, s.removeActingSettings, both.watchService()); err != nil {
		return nil, asWait(err)
	}
	left := journal.MinioPrepared{Source: both.id, Target: both.targetID, Version: version, Foreign: foreign, Done: true}
	if err := runWatched(ctx, func(ctx context.Context) error { return both.surveyStores(ctx, &left) }, both.watchService(), watchPolicy(step)); err != nil {
		return nil, asWait(err)
	}
	return json.Marshal(left)
}

// surveyStores prepares the target, and records how much data both sides have.
func (s sides) surveyStores(ctx context.Context, left *journal.MinioPrepared) error {
	lost, err := s.prepare(ctx)
	if err != nil {
		return err
	}
	left.NotCarried = lost.names()
	all, err := replica.Survey(ctx, s.source)
	if err != nil {
		return err
	}
	there, err := replica.Survey(ctx, s.target)
	if err != nil {
		return err
	}
	left.Buckets, left.Versions, left.Bytes = all.Buckets, all.Versions, all.Bytes
	left.ThereVersions, left.ThereBytes = there.Versions, there.Bytes
	for _, side := range []struct {
		minio.Store
		version *string
	}{{s.source, &left.SourceRelease}, {s.target, &left.TargetRelease}} {
		server, err := side.Server(ctx)
		if err != nil {
			return err
		}
		*side.version = server.Version
	}
	return nil
}

// releasedForeignData returns the data of the target that EKCO did not copy and that a person released.
func (s prepare) releasedForeignData(ctx context.Context, both sides, step actions.StepContext) (journal.MinioFound, error) {
	plan, err := planOf(step.Action)
	if err != nil {
		return journal.MinioFound{}, err
	}
	before, err := outputOf[journal.MinioPrepared](step.Action, step.Planned.ID)
	if err != nil {
		return journal.MinioFound{}, err
	}
	since := plan.Ours
	if plan.Source != both.id || plan.Target != both.targetID || since.After(time.Now()) {
		// No data counts as EKCO's copy: EKCO copied another store, of which this may be the last copy; or copied to
		// another store; or its clock was wrong.
		since = time.Time{}
	}
	found, err := onlyIn(ctx, both.target, both.source, since, replica.Foreign)
	if err == nil && since.IsZero() { // the target may have served clients
		err = addChanged(ctx, both.target, both.source, true, &found)
	}
	if err != nil || found.Count == 0 {
		return found, err
	}
	found.Store = both.id
	if isReleased(found, before.Foreign, step.Action, MinioNothingForeign) {
		return before.Foreign, nil
	}
	outputs, err := json.Marshal(journal.MinioPrepared{Foreign: found})
	return found, errors.Join(err, &actions.UnfinishedError{Left: foreignText(found, step.Action), Waits: true, Outputs: outputs})
}

// loss lists items that EKCO cannot copy.
type loss struct {
	settings []replica.Warning
	// iam names users, policies and similar items; versions names versions of objects.
	iam, versions []string
	// kept names users, policies and similar items that only the target has and that no person released.
	kept []string
}

// names returns the names of all lost items, for persons.
func (l loss) names() (names []string) {
	for _, w := range l.settings {
		names = append(names, w.String())
	}
	for _, name := range l.iam {
		names = append(names, name+" is not accepted as it is")
	}
	for _, name := range l.versions {
		names = append(names, name+" cannot be carried over")
	}
	return names
}

// hasSetting reports whether the loss includes this setting of the bucket.
func (l loss) hasSetting(bucket string, name s3.SettingName) bool {
	return slices.ContainsFunc(l.settings, func(w replica.Warning) bool { return w.Bucket == bucket && w.Setting == name })
}

// prepare creates users, policies, and buckets with the settings that do not act automatically. It keeps secrets in
// memory only.
func (s sides) prepare(ctx context.Context) (loss, error) {
	warnings, err := replica.Prepare(ctx, s.source, s.target)
	if err != nil {
		return loss{}, err
	}
	iam, kept, err := s.copyIAM(ctx)
	return loss{settings: warnings, iam: iam, kept: kept}, err
}

// copyIAM copies users and policies from the source. It returns the names that the target refuses, and the names that
// only the target has. EKCO does not remove the latter: a server serves even if it has lost the files of its users.
func (s sides) copyIAM(ctx context.Context) (refused, kept []string, err error) {
	want, err := s.source.ExportIAM(ctx)
	if err != nil {
		return nil, nil, err
	}
	if refused, err = s.target.ImportIAM(ctx, want, s.target.released); err != nil {
		return nil, nil, err
	}
	have, err := s.target.ExportIAM(ctx)
	if err != nil {
		return nil, nil, err
	}
	return refused, have.NotIn(want), nil
}

// rehearseSettings sets each setting that acts automatically for a moment, and returns the settings that the target
// refuses: a person must know these before the switch. keeps collects the settings.
func (s sides) rehearseSettings(ctx context.Context, keeps *actingSettings) (refused []replica.Warning, err error) {
	buckets, err := s.source.Buckets(ctx)
	if err != nil {
		return nil, err
	}
	for _, bucket := range buckets {
		want, err := s.source.Settings(ctx, bucket)
		if err != nil {
			return nil, err
		}
		have, err := s.target.Settings(ctx, bucket)
		if err != nil {
			return nil, err
		}
		keeps.add(bucket, want)
		for _, name := range []s3.SettingName{s3.Lifecycle, s3.Notification, s3.Quota} {
			if want[name] == "" && have[name] == "" { // otherwise remove what an interrupted attempt left
				continue
			}
			warning, err := s.trySetting(ctx, bucket, name, want[name])
			if err != nil {
				return nil, err
			}
			refused = append(refused, warning...)
		}
	}
	return refused, nil
}

// trySetting sets a setting and removes it again.
func (s sides) trySetting(ctx context.Context, bucket string, name s3.SettingName, want string) ([]replica.Warning, error) {
	if refused, err := replica.Try(ctx, s.target, bucket, name, want); err != nil || len(refused) > 0 {
		return refused, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pointBackTimeout) // remove it even if ctx ends, because it would act on copies
	defer cancel()
	if err := s.target.Set(ctx, bucket, name, ""); err != nil {
		return nil, fmt.Errorf("remove the %s of bucket %s, which EKCO set only as a test: %w", name, bucket, err)
	}
	return nil, nil
}
