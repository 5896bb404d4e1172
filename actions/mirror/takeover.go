package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Quiet is how long another journal's mirror must stay unchanged, while it is
// in the way, before it is taken over. Nothing but the Recreate strategy keeps
// two EKCOs from running at once, and while a machine is lost they may. Of two that
// live, the one that wrote last goes on and the other holds back; one that ran
// only for a while does not stand in the way for longer than this.
const Quiet = 2 * time.Minute

// otherJournalError is the error that the mirror is another journal's.
type otherJournalError struct {
	content Content
	version string
}

// Error implements error.
func (o *otherJournalError) Error() string {
	return fmt.Sprintf("%v: the mirror belongs to journal %q, written %s; is a second EKCO running? "+
		"This EKCO takes the mirror over when it has not changed for %s",
		ErrOtherJournal, o.content.JournalID, o.content.WrittenAt.Format(time.RFC3339), Quiet)
}

// Unwrap returns [ErrOtherJournal].
func (o *otherJournalError) Unwrap() error { return ErrOtherJournal }

// stands reports whether the error is a mirror that is not this journal's to
// replace, rather than a failure to write one.
func stands(err error) bool {
	return errors.Is(err, ErrOtherJournal) || errors.Is(err, ErrOtherFormat) || errors.Is(err, ErrOutdated) || errors.Is(err, ErrIncomplete)
}

// Key names what is in the way of a mirror that is not ready.
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

// rival is the other journal's mirror as it was last seen, and since when. That
// is by the own clock: another machine's may be wrong.
type rival struct {
	version string
	since   time.Time
}

// considerTakeover returns nil when the mirror may be replaced from now on.
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
	m.inherit(other.content)
	return nil
}

// note keeps why, and since when, the newest content is not in the cluster.
func (m *Mirror) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.failing == nil {
		m.since = time.Now()
	}
	m.failing = err
}

// ErrNoSpace is returned for an action that the mirror does not hold.
var ErrNoSpace = errors.New("the mirror has no space for the action")

// Ready waits, as [Mirror.Sync] does, and says whether an irreversible step of the action may
// start as far as the mirror is concerned. It returns the reason against it: a
// mirror that is not this journal's to replace, for as long as it is in the way; an action that finds no
// space in it; and any other failure to write until it has lasted for patience. From then on
// it returns nil, since a cluster where the mirror cannot be written must be
// repaired all the same. What is the noun for the action in the reason.
func (m *Mirror) Ready(ctx context.Context, action, what string, patience time.Duration) error {
	err := m.Sync(ctx)
	m.mu.Lock()
	since, failing, leftOut := m.since, m.failing, slices.Contains(m.leftOut, action)
	m.mu.Unlock()
	switch {
	case err != nil && stands(err):
		return err
	case leftOut:
		return fmt.Errorf("%w: all open actions together exceed %d MiB; the %s continues when others have ended", ErrNoSpace, maxSize>>20, what)
	case err == nil:
		return nil
	}
	switch lasted := time.Since(since); {
	case failing == nil: // it was too slow for ctx
		return err
	case stands(failing):
		return failing
	case lasted < patience:
		return fmt.Errorf("%w; the %s continues without the mirror in %s", err, what, (patience - lasted).Round(time.Second))
	}
	return nil
}
