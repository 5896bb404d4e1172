package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// prepare makes the buckets, and users and policies. Its proof is what it leaves on record:
// whether all is the same is looked at when all was copied.
type prepare struct{ *migrator }

func (s prepare) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var left journal.MinioPrepared
	done, err := step.Output(step.Planned.ID, &left)
	return actions.Proof{Done: done, Missing: "buckets, users and policies are not prepared", Outputs: step.Action.Steps[step.Planned.ID].Outputs}, err
}

func (s prepare) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	both, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer both.close()
	lost, err := both.prepare(ctx)
	if err != nil {
		return nil, err
	}
	extent, err := replica.Survey(ctx, both.source)
	if err != nil {
		return nil, err
	}
	return json.Marshal(journal.MinioPrepared{
		Buckets: extent.Buckets, Versions: extent.Versions, Bytes: extent.Bytes, NotCarried: lost.names(),
	})
}

// loss is what cannot be carried over.
type loss struct {
	settings []replica.Warning
	// iam are users, policies and the like, versions those of objects.
	iam, versions []string
}

// names is the loss for people.
func (l loss) names() (names []string) {
	for _, w := range l.settings {
		names = append(names, w.String())
	}
	for _, name := range l.iam {
		names = append(names, name+" is not accepted as it is")
	}
	for _, name := range l.versions {
		names = append(names, "object "+name+" cannot be carried over")
	}
	return names
}

// hasSetting reports whether a setting of a bucket is part of it.
func (l loss) hasSetting(bucket string, name s3.SettingName) bool {
	return slices.ContainsFunc(l.settings, func(w replica.Warning) bool { return w.Bucket == bucket && w.Setting == name })
}

// prepare makes buckets with what does not act by itself, and users and policies. Secrets
// are in memory only.
func (s sides) prepare(ctx context.Context) (loss, error) {
	warnings, err := replica.Prepare(ctx, s.source, s.target)
	if err != nil {
		return loss{}, err
	}
	iam, err := s.sameIAM(ctx)
	return loss{settings: warnings, iam: iam}, err
}

// sameIAM makes users and policies those of the source, and names what the target does not
// accept.
func (s sides) sameIAM(ctx context.Context) ([]string, error) {
	want, err := s.source.ExportIAM(ctx)
	if err != nil {
		return nil, err
	}
	return s.target.ImportIAM(ctx, want)
}

// rehearse sets what acts by itself for a moment each, and names what the target does not
// accept: that must be known before the switch.
func (s sides) rehearse(ctx context.Context) (refused []replica.Warning, err error) {
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
		for _, name := range []s3.SettingName{s3.Lifecycle, s3.Notification, s3.Quota} {
			if want[name] == "" || name.Same(want[name], have[name]) {
				continue
			}
			warning, err := s.trySetting(ctx, bucket, name, want[name], have[name])
			if err != nil {
				return nil, err
			}
			refused = append(refused, warning...)
		}
	}
	return refused, nil
}

// trySetting sets a setting and takes it back.
func (s sides) trySetting(ctx context.Context, bucket string, name s3.SettingName, want, have string) ([]replica.Warning, error) {
	err := s.target.Set(ctx, bucket, name, want)
	var refused s3.Refusal
	switch {
	case errors.Is(err, s3.ErrNotOffered):
		return []replica.Warning{{Bucket: bucket, Setting: name, Reason: "the target does not offer it"}}, nil
	case errors.As(err, &refused):
		return []replica.Warning{{Bucket: bucket, Setting: name, Reason: refused.Reason()}}, nil
	case err != nil:
		return nil, err
	}
	if err := s.target.Set(ctx, bucket, name, have); err != nil {
		return nil, fmt.Errorf("take back the %s of bucket %s, which was only tried: %w", name, bucket, err)
	}
	return nil, nil
}
