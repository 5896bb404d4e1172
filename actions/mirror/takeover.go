package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Quiet is how long another journal's mirror must stay unchanged before this EKCO takes it over. While a machine is
// lost, two EKCOs may run: only the Recreate strategy prevents that. Then the EKCO that wrote the mirror last
// continues, and the other one waits. If the writer has stopped, the wait ends after Quiet.
const Quiet = 2 * time.Minute

// otherJournalError reports that the mirror belongs to another journal.
type otherJournalError struct {
	content Content
	version string
}

func (o *otherJournalError) Error() string {
	return fmt.Sprintf("%v: the mirror belongs to journal %q, written %s; is a second EKCO running? "+
		"This EKCO takes the mirror over when it has not changed for %s",
		ErrOtherJournal, o.content.JournalID, o.content.WrittenAt.Format(time.RFC3339), Quiet)
}

func (o *otherJournalError) Unwrap() error { return ErrOtherJournal }

// mustNotReplace reports whether the error means that this journal must not replace the mirror, and not only that a
// write failed.
func mustNotReplace(err error) bool {
	return errors.Is(err, ErrOtherJournal) || errors.Is(err, ErrOtherFormat) || errors.Is(err, ErrOutdated) || errors.Is(err, ErrIncomplete)
}

// Key returns the key of a hold for an error of [Mirror.Ready].
func Key(err error) string {
	switch {
	case errors.Is(err, ErrOtherJournal):
		return "other journal"
	case errors.Is(err, ErrOtherFormat):
		return "other format"
	case errors.Is(err, ErrOutdated):
		return "outdated"
	case errors.Is(err, ErrIncomplete):
		return "incomplete"
	case errors.Is(err, ErrNoSpace):
		return "no space"
	}
	return "unwritten"
}

// rival is the last seen version of another journal's mirror, with the time since when it has not changed. The time is
// by this machine's clock, because another machine's clock may be wrong.
type rival struct {
	version string
	since   time.Time
}

// considerTakeover takes over the mirror if it has been quiet. It returns nil if this EKCO may now replace the mirror.
func (m *Mirror) considerTakeover(ctx context.Context, other otherJournalError) error {
	if m.rival.version != other.version {
		m.rival = rival{version: other.version, since: time.Now()}
	}
	if m.takeOver == nil || time.Since(m.rival.since) < Quiet {
		return &other
	}
	if err := m.takeOver(ctx, other.content); err != nil {
		return fmt.Errorf("take over the open actions of journal %s: %w", other.content.JournalID, errors.Join(ErrOtherJournal, err))
	}
	m.log.Info("took over the mirror of another journal", "journal", other.content.JournalID)
	m.rival = rival{}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.known, m.claimed = other.version, true, false
	m.inheritKnowledge(other.content)
	return nil
}

// recordResult stores the result of the last write, and since when writes fail.
func (m *Mirror) recordResult(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.failing == nil {
		m.since = time.Now()
	}
	m.failing = err
}

// ErrNoSpace is returned for an action that is not in the mirror because there is no space.
var ErrNoSpace = errors.New("the mirror has no space for the action")

// Ready waits like [Mirror.Sync], and returns nil if the mirror allows an irreversible step of the action. Otherwise it
// returns the reason: this journal must not replace the mirror, the mirror has no space for the action, or a write
// failed. After writes have failed for longer than patience, it returns nil, because EKCO must be able to repair a
// cluster in which it cannot write the mirror. what names the action in the reason.
func (m *Mirror) Ready(ctx context.Context, action, what string, patience time.Duration) error {
	err := m.Sync(ctx)
	m.mu.Lock()
	since, failing, leftOut := m.since, m.failing, slices.Contains(m.leftOut, action)
	m.mu.Unlock()
	switch {
	case err != nil && mustNotReplace(err):
		return err
	case leftOut:
		return fmt.Errorf("%w: all open actions together exceed %d MiB; the %s continues when others have ended", ErrNoSpace, maxSize>>20, what)
	case err == nil:
		return nil
	}
	switch lasted := time.Since(since); {
	case failing == nil: // it was too slow for ctx
		return err
	case mustNotReplace(failing):
		return failing
	case lasted < patience:
		return fmt.Errorf("%w; if that lasts %s longer, the %s continues without the mirror", err, (patience - lasted).Round(time.Second), what)
	}
	return nil
}
