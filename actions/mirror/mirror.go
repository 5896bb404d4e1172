package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// ErrOtherJournal is returned if an EKCO with another journal has written the mirror since [Mirror.Load]. This Mirror
// writes again only after it has taken that mirror over (see [OnTakeover]) or loaded it.
var ErrOtherJournal = errors.New("another journal is mirrored")

// ErrOutdated is returned by the function of [Judge] if the mirror names newer events of this journal than the
// journal's file has.
var ErrOutdated = errors.New("the journal lost its newest events")

// Mirror writes the open actions to the cluster. One goroutine must call [Mirror.Run]. The other methods are safe for
// concurrent use.
type Mirror struct {
	api        kube.API
	journalID  string
	log        *slog.Logger
	onFailure  func(error)
	takeOver   func(context.Context, Content) error
	judge      func(context.Context, Content) error
	ekco, host string
	expendable []journal.ActionKind

	// Only the goroutine in Run uses these fields. end is the journal's last event at the last read.
	endings endedActions
	end     journal.Position
	rival   rival
	parts   parts
	pace    pace

	mu sync.Mutex
	// wanted is the newest content, and wantedGen its generation. writtenGen is the generation that the cluster has.
	wanted                Content
	wantedGen, writtenGen uint64
	// version is the version that the next write replaces. It is valid only if known is true.
	version string
	known   bool
	// claimed is true if EKCO has listed the parts that existed at that version.
	claimed bool
	// covered is the last event of this journal that the mirror in the cluster names.
	covered journal.Position
	// inherited has the ended actions of mirrors that were loaded or taken over.
	inherited []EndedAction
	// knew has the last event of each other journal that the mirrors named. knewAt has the last such event on disk.
	knew   map[string]uint64
	knewAt map[string]journal.Position
	// held has the actions in the mirror in the cluster. leftOut has the actions for which there was no space.
	held    map[string]journal.ActionRecord
	leftOut []string
	// failing is the reason why the newest content is not in the cluster. since is when that began.
	failing error
	since   time.Time

	wake  chan struct{}
	syncs chan chan error
}

// Option configures a mirror.
type Option func(*Mirror)

// OnFailure sets a function that is called with the error of each failed write. It must not block.
func OnFailure(f func(error)) Option { return func(m *Mirror) { m.onFailure = f } }

// Writer sets the version of the EKCO that writes the mirror, and the name of its machine.
func Writer(version, host string) Option { return func(m *Mirror) { m.ekco, m.host = version, host } }

// Expendable names the kinds of action whose loss does no harm. If there is no space for all actions, the mirror leaves
// these out first.
func Expendable(kinds ...journal.ActionKind) Option {
	return func(m *Mirror) { m.expendable = kinds }
}

// Judge sets a function that decides whether this Mirror may replace a mirror of the same journal that another Mirror
// wrote. If the function returns an error, the mirror stays unchanged.
func Judge(f func(ctx context.Context, own Content) error) Option {
	return func(m *Mirror) { m.judge = f }
}

// Journal sets the journal from which the mirror reads the last event and the ended actions. Without it, another EKCO
// cannot know which of its actions were finished here, and repeats these.
func Journal(store journal.Store) Option { return func(m *Mirror) { m.endings.store = store } }

// OnTakeover sets a function that adopts the open actions of another journal. It is called when that journal's mirror
// has not changed for [Quiet]. When f returns nil, the mirror is replaced, so f must first write the adopted actions to
// disk and pass them to Update. If f returns an error, the mirror stays unchanged, and f is called again.
func OnTakeover(f func(ctx context.Context, other Content) error) Option {
	return func(m *Mirror) { m.takeOver = f }
}

// New returns a mirror of the journal with this id. It writes nothing before the first [Mirror.Update].
func New(api kube.API, journalID string, log *slog.Logger, options ...Option) *Mirror {
	m := &Mirror{
		api: api, journalID: journalID, log: log, onFailure: func(error) {},
		wake: make(chan struct{}, 1), syncs: make(chan chan error), knew: make(map[string]uint64),
		knewAt: make(map[string]journal.Position),
	}
	for _, option := range options {
		option(m)
	}
	return m
}

// Read reads the mirror. The error wraps kube.ErrNotFound if there is no mirror. If a newer EKCO wrote it, the error
// wraps [ErrOtherFormat], and the content has the readable members.
func (m *Mirror) Read(ctx context.Context) (Content, error) {
	content, _, err := m.read(ctx)
	return content, err
}

// Load reads the mirror like Read, and allows this journal to replace that mirror, unless a newer EKCO wrote it.
func (m *Mirror) Load(ctx context.Context) (Content, error) {
	content, version, err := m.read(ctx)
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		return content, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.known, m.claimed = version, true, false
	m.inheritKnowledge(content)
	return content, err
}

// maxReads limits the repeated reads of a mirror that another EKCO is writing.
const maxReads = 5

// read reads the index and the parts that it names. If a part is missing or changed although the index stays the same,
// the error wraps [ErrIncomplete], and the content has the readable parts.
func (m *Mirror) read(ctx context.Context) (content Content, version string, err error) {
	for range maxReads {
		raw, now, readErr := m.api.ReadMirror(ctx)
		switch {
		case readErr != nil:
			return Content{}, "", fmt.Errorf("load the mirror of open actions: %w", readErr)
		case err != nil && now == version:
			return content, version, err
		}
		version = now
		if content, err = parse(raw); err == nil {
			err = m.readActions(ctx, &content)
		}
		if !errors.Is(err, ErrIncomplete) {
			return content, version, err
		}
		err = fmt.Errorf("%w. EKCO starts nothing irreversible and leaves the mirror unchanged: restore those ConfigMaps, or delete %s "+
			"if you do not need the mirror", err, kube.MirrorName)
	}
	return content, version, err
}

// inheritKnowledge stores the ended actions and the last events of other journals that the mirror in the cluster lists.
// The caller must hold mu.
func (m *Mirror) inheritKnowledge(content Content) {
	m.inherited = merge(content.Ended, m.inherited)
	if content.JournalID == m.journalID {
		m.covered = content.At
	}
	maps.Copy(m.knew, content.Covered)
	maps.Copy(m.knewAt, content.CoveredAt)
	m.knew[content.JournalID], m.knewAt[content.JournalID] = content.Knew(content.JournalID), content.At
	maps.DeleteFunc(m.knew, func(id string, seq uint64) bool { return seq == 0 || id == m.journalID })
	maps.DeleteFunc(m.knewAt, func(id string, _ journal.Position) bool { return m.knew[id] == 0 })
}

// Covered returns the last event of this journal that the mirror in the cluster names. The journal must keep that
// event, so that EKCO can compare its hash at the next start.
func (m *Mirror) Covered() journal.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.covered
}

// Failing returns the reason why the newest content is not in the cluster, or nil.
func (m *Mirror) Failing() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failing
}

// Held returns the record of the action in the last written mirror.
func (m *Mirror) Held(action string) (record journal.ActionRecord, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, is = m.held[action]
	return record, is
}

// Missing returns the ids of the open actions that the mirror in the cluster lacks, because there is no space or
// because writes fail.
func (m *Mirror) Missing() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing := slices.Clone(m.leftOut)
	for _, action := range m.wanted.Actions {
		if m.failing != nil && m.held[action.ID].ID == "" && !slices.Contains(missing, action.ID) {
			missing = append(missing, action.ID)
		}
	}
	return missing
}

// Refresh writes the mirror even if no action has changed. The mirror then names the journal's newest event, so that
// EKCO notices a loss of that event.
func (m *Mirror) Refresh() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wantedGen > 0 {
		m.wantedGen++
		m.signal()
	}
}

// signal wakes the goroutine in Run.
func (m *Mirror) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Update sets the open actions and the other state to mirror. It returns at once. Only the newest update is written,
// and only if it changes something. The caller must not change the arguments afterwards.
func (m *Mirror) Update(open []journal.ActionRecord, clusterUID string, carried journal.Carried) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wantedGen > 0 && m.wanted.ClusterUID == clusterUID && sameActions(m.wanted.Actions, open) && maps.Equal(m.wanted.Pauses, carried.Pauses) {
		return // the rest of carried changes only when an action ends
	}
	m.wanted = Content{
		Version: m.ekco, Host: m.host, JournalID: m.journalID, ClusterUID: clusterUID,
		WrittenAt: time.Now().UTC(), Actions: append([]journal.ActionRecord{}, open...), Carried: carried,
	}
	m.wantedGen++
	m.signal()
}

// sameActions reports whether two lists have the same actions in the same state. It compares LastSeq, which every event
// of an action changes.
func sameActions(x, y []journal.ActionRecord) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].ID != y[i].ID || x[i].LastSeq != y[i].LastSeq || x[i].Unreadable != y[i].Unreadable {
			return false
		}
	}
	return true
}

// Sync waits until all earlier updates are in the cluster. If a write fails before that, Sync returns the error; Run
// retries the write.
func (m *Mirror) Sync(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case m.syncs <- answer:
	case <-ctx.Done():
		return fmt.Errorf("wait for the mirror of open actions: %w", ctx.Err())
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the mirror of open actions: %w", ctx.Err())
	}
}

// These are the backoffs between failed writes. Update and Sync retry at once.
const (
	minBackoff = time.Second
	maxBackoff = 2 * time.Minute
)

// checkInterval is how often Run reads the mirror, to notice that another program changed it.
const checkInterval = time.Minute

// Run writes the updates until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	pause := &backoff.ExponentialBackOff{InitialInterval: minBackoff, MaxInterval: maxBackoff, Multiplier: 2, RandomizationFactor: 0.2}
	retry := time.NewTimer(maxBackoff)
	defer retry.Stop()
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	said := ""
	var waiting []chan error
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-retry.C:
		case <-check.C:
			if !m.isDamaged(ctx) {
				continue
			}
		case answer := <-m.syncs:
			waiting = append(waiting, answer)
		}
		if _, _, pending := m.pendingContent(); pending {
			if wait := m.pace.takeRound(time.Now(), len(waiting) > 0); wait > 0 {
				retry.Reset(wait)
				continue
			}
		}
		err := m.write(ctx)
		if ctx.Err() != nil {
			return
		}
		m.recordResult(err)
		for _, answer := range waiting {
			answer <- err
		}
		waiting = nil
		if err == nil {
			pause.Reset()
			retry.Stop()
			said = m.logRecovery(said)
			continue
		}
		retry.Reset(pause.NextBackOff())
		said = m.logFailure(err, said)
	}
}

// logFailure logs an error, but only if it differs from the last logged error.
func (m *Mirror) logFailure(err error, said string) string {
	m.onFailure(err)
	if err.Error() != said {
		m.log.Warn("the open actions are not mirrored; an EKCO that starts elsewhere would not know them", "error", err)
	}
	return err.Error()
}

func (m *Mirror) logRecovery(said string) string {
	if said != "" {
		m.log.Info("the open actions are mirrored again")
	}
	return ""
}
