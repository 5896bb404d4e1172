package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// Warning is a setting that cannot be copied.
type Warning struct {
	Bucket  string
	Setting s3.SettingName
	// Mark is the hash of the value. An administrator gives it to accept exactly this value.
	Mark string
	// Reason is the server's reason, if it gave one.
	Reason string
}

// String returns the text for a message.
func (w Warning) String() string {
	return fmt.Sprintf("the %s of bucket %s (%s) cannot be carried over: %s", w.Setting, w.Bucket, w.Mark, w.Reason)
}

// activeSettings are the settings that would act on the copied objects during a copy: the server would remove, lock or
// refuse objects, or send notifications about them.
var activeSettings = []s3.SettingName{s3.Versioning, s3.ObjectLock, s3.Lifecycle, s3.Notification, s3.Quota}

// Acts reports whether a setting is active. Only [Settle] sets an active setting.
func Acts(name s3.SettingName) bool { return slices.Contains(activeSettings, name) }

// Prepare creates the buckets of the source on the target, with all settings that are not active.
// If a bucket of the source has or had versioning, the target keeps versions. Prepare may be called again at any
// time.
func Prepare(ctx context.Context, source s3.Source, target s3.Target) ([]Warning, error) {
	return eachBucket(ctx, source, target, prepare)
}

// Settle gives the buckets of the target all settings of the source. Call it after the last sync pass. Before another
// pass, call [Prepare], which enables suspended versioning again.
func Settle(ctx context.Context, source s3.Source, target s3.Target) ([]Warning, error) {
	return eachBucket(ctx, source, target, func(ctx context.Context, target s3.Target, bucket string, want s3.Settings) ([]Warning, error) {
		return apply(ctx, target, bucket, want, s3.SettingNames())
	})
}

// ActingOf returns the active settings among all settings of a bucket. [Settle] sets them.
func ActingOf(all s3.Settings) s3.Settings {
	of := make(s3.Settings)
	for _, name := range activeSettings {
		if all[name] != "" && all[name] != s3.VersioningEnabled {
			of[name] = all[name]
		}
	}
	return of
}

// SettleAs replaces [Settle] if the source is not available: it sets the settings that [ActingOf] returned earlier, by
// bucket. It skips buckets that the target does not have.
func SettleAs(ctx context.Context, target s3.Target, buckets map[string]s3.Settings) ([]Warning, error) {
	return eachBucket(ctx, recorded{buckets: buckets}, target, func(ctx context.Context, target s3.Target, bucket string, want s3.Settings) ([]Warning, error) {
		var names []s3.SettingName // in the order in which they can be set
		for _, name := range activeSettings {
			if want[name] != "" {
				names = append(names, name)
			}
		}
		warnings, err := apply(ctx, target, bucket, want, names)
		if errors.Is(err, s3.ErrGone) {
			return nil, nil
		}
		return warnings, err
	})
}

// recorded is a source that has only recorded settings.
type recorded struct {
	s3.Source
	buckets map[string]s3.Settings
}

func (r recorded) Buckets(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(r.buckets)), nil
}

func (r recorded) Settings(_ context.Context, bucket string) (s3.Settings, error) {
	return r.buckets[bucket], nil
}

// eachBucket calls do for each bucket of the source, several at the same time, and returns all warnings.
func eachBucket(ctx context.Context, source s3.Source, target s3.Target,
	do func(context.Context, s3.Target, string, s3.Settings) ([]Warning, error),
) ([]Warning, error) {
	buckets, err := source.Buckets(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all []Warning
	err = forEach(ctx, bucketsAtOnce, slices.Values(buckets), func(ctx context.Context, bucket string) error {
		settings, err := source.Settings(ctx, bucket)
		if errors.Is(err, s3.ErrGone) {
			return nil
		}
		if err != nil {
			return err
		}
		warnings, err := do(ctx, target, bucket, settings)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, warnings...)
		return err
	})
	slices.SortStableFunc(all, func(a, b Warning) int { return strings.Compare(a.Bucket, b.Bucket) })
	return all, err
}

func prepare(ctx context.Context, target s3.Target, bucket string, want s3.Settings) ([]Warning, error) {
	if err := target.CreateBucket(ctx, bucket, want[s3.ObjectLock] != ""); err != nil {
		return nil, err
	}
	if want[s3.Versioning] != "" {
		if err := target.Set(ctx, bucket, s3.Versioning, s3.VersioningEnabled); err != nil {
			return nil, err
		}
	}
	var quiet []s3.SettingName
	for _, name := range s3.SettingNames() {
		if !slices.Contains(activeSettings, name) {
			quiet = append(quiet, name)
		}
	}
	return apply(ctx, target, bucket, want, quiet)
}

// apply changes the settings that differ. It returns a warning if the target refuses a value, and an error if anything
// else fails.
func apply(ctx context.Context, target s3.Target, bucket string, want s3.Settings, names []s3.SettingName) ([]Warning, error) {
	have, err := target.Settings(ctx, bucket)
	if err != nil {
		return nil, err
	}
	var warnings []Warning
	for _, name := range names {
		if name.Same(want[name], have[name]) {
			continue
		}
		refused, err := Try(ctx, target, bucket, name, want[name])
		if warnings = append(warnings, refused...); err != nil {
			return warnings, err
		}
	}
	return warnings, nil
}

// Try changes a setting, and returns a warning if the target refuses it.
func Try(ctx context.Context, target s3.Target, bucket string, name s3.SettingName, value string) ([]Warning, error) {
	err := target.Set(ctx, bucket, name, value)
	var refused s3.Refusal
	switch {
	case errors.Is(err, s3.ErrNotOffered):
		return []Warning{{bucket, name, name.Mark(value), "the target does not offer it"}}, nil
	case errors.As(err, &refused):
		return []Warning{{bucket, name, name.Mark(value), refused.Reason()}}, nil
	}
	return nil, err
}

// compareSettings returns the names of the settings that differ.
func compareSettings(ctx context.Context, source, target s3.Source, bucket string) ([]s3.SettingName, error) {
	var want, have s3.Settings
	var theirs, ours error
	parallel.Run(
		func() { want, theirs = source.Settings(ctx, bucket) },
		func() { have, ours = target.Settings(ctx, bucket) },
	)
	if err := errors.Join(theirs, ours); err != nil {
		return nil, err
	}
	var differ []s3.SettingName
	for _, name := range s3.SettingNames() {
		if !name.Same(want[name], have[name]) {
			differ = append(differ, name)
		}
	}
	return differ, nil
}
