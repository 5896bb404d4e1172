package minio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

const (
	// asideBucket is a bucket on the highly available MinIO. It has the versions that standalone MinIO no longer has
	// although no event reported their removal. Migrations ignore the bucket, unless a client created it.
	asideBucket = "ekco-set-aside"
	// maxAside is the maximum number of versions that EKCO sets aside without asking a person.
	maxAside = 20
)

// setAside handles versions that only the highly available MinIO has: clients may have removed them from standalone
// MinIO while EKCO did not listen. EKCO sets a few such versions aside on the highly available MinIO; about more of
// them a person decides.
func (a *attempt) setAside(ctx context.Context, both sides, kept replica.Kept, users []string) error {
	names := slices.Clone(users)
	buckets := false
	kept, err := both.removeReported(ctx, kept)
	if err != nil {
		return err
	}
	for _, item := range kept.Items {
		names, buckets = append(names, item.String()), buckets || item.Key == ""
	}
	if kept.Count+len(users) == 0 {
		a.state.Lost = journal.MinioFound{}
		return nil
	}
	aside := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.state.Aside, names))))
	if buckets || len(users) > 0 || kept.Count > len(kept.Items) || len(aside) > maxAside {
		return a.askAboutLoss(both, kept.Count+len(users), names)
	}
	a.state.Aside = aside
	if err := a.recordState(ctx); err != nil {
		return err
	}
	a.step.Log.Warn("versions disappeared from standalone MinIO, but no event reported the removal; EKCO sets them aside on ha-minio", "bucket", asideBucket, "names", names)
	var stays []string
	for _, item := range kept.Items {
		switch err := both.putAside(ctx, item); {
		case errors.As(err, new(s3.Refusal)), errors.Is(err, s3.ErrTaken), errors.Is(err, s3.ErrLocked):
			a.step.Log.Warn("cannot set a version aside", "name", item.String(), "error", err)
			stays = append(stays, item.String())
		case err != nil:
			return err
		}
	}
	if len(stays) > 0 {
		a.state.Aside = slices.DeleteFunc(aside, func(name string) bool { return slices.Contains(stays, name) })
		return a.askAboutLoss(both, len(stays), stays)
	}
	return nil
}

// askAboutLoss asks a person to decide about data that only the highly available MinIO has.
func (a *attempt) askAboutLoss(both sides, count int, names []string) error {
	slices.Sort(names)
	names = names[:min(len(names), replica.MaxNames)]
	a.state.Lost = journal.MinioFound{Count: count, Names: names, At: time.Now().UTC(), Store: both.id}
	return &actions.UnfinishedError{Left: lostText(a.state.Lost, a.step.Action), Waits: true}
}

// removeReported removes versions from the copy if an event has reported their removal since the pass kept them, and
// returns the rest.
func (s sides) removeReported(ctx context.Context, kept replica.Kept) (rest replica.Kept, err error) {
	if rest.Count = kept.Count; kept.Count > 0 {
		s.listener.catchUp(ctx)
	}
	for _, item := range kept.Items {
		if item.Key == "" || !s.mayRemove(item.Bucket, item.Version) {
			rest.Items = append(rest.Items, item)
			continue
		}
		if err := s.target.Remove(ctx, item.Bucket, item.Version); err != nil {
			return rest, err
		}
		rest.Count--
	}
	return rest, nil
}

// putAside sets a version aside, unless the source has that version now.
func (s sides) putAside(ctx context.Context, item replica.Item) error {
	theirs, err := s.source.VersionsOf(ctx, item.Bucket, item.Key)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(theirs, func(v s3.Version) bool { return v.ID == item.ID && !v.Modified.Before(item.Modified) }) {
		return nil
	}
	if err := s.target.SetAside(ctx, item.Bucket, item.Version, asideBucket); err != nil {
		return err
	}
	return s.target.Remove(ctx, item.Bucket, item.Version)
}

func lostText(found journal.MinioFound, record journal.ActionRecord) string {
	return fmt.Sprintf("standalone MinIO does not have %s that ha-minio has, and no event reported their removal: %s; if the volume of standalone MinIO lost data, restore the volume, or run \"ekco cancel %s\" and point Service minio to ha-minio; "+
		"\"ekco retry %s\" checks again; if clients removed them, %s removes exactly the items named here from ha-minio", words.Count(found.Count, "item"), textOf(found), record.ID, record.ID, releaseCommand(keyFor(found), record))
}

// sourceKept implements [MinioSourceKept], and warns about versions that EKCO set aside.
func sourceKept(_ context.Context, record journal.ActionRecord) actions.Verdict {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	verdict := holdFor(record, journal.StepCutOverMinio, MinioSourceKept, lostText(cut.Lost, record), cut.Lost)
	if verdict.Kind == actions.VerdictPass && len(cut.Aside) > 0 {
		return actions.PassBecause(asideText(cut.Aside)).About("aside")
	}
	return verdict
}

func asideText(names []string) string {
	return fmt.Sprintf("%s disappeared from standalone MinIO, but no event reported the removal; they are in bucket %s of ha-minio: delete them yourself after checking that no data is missing: %s",
		words.Count(len(names), "version"), asideBucket, strings.Join(names, ", "))
}
