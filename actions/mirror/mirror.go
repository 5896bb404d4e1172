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

// ErrOtherJournal is returned when another EKCO, with another journal, has
// written the mirror since it was last loaded here. It is not overwritten until
// it was taken over (see [OnTakeover]), or [Mirror.Load] has been called again.
var ErrOtherJournal = errors.New("another journal is mirrored")

// ErrOutdated is for the function that [Judge] sets: the mirror knows newer
// events of this journal than its file has.
var ErrOutdated = errors.New("the journal lost its newest events")

// Mirror writes the open actions to the cluster. Make one with [New], and let
// one goroutine of its owner call [Mirror.Run]. The other methods are safe for
// concurrent use.
type Mirror struct {
	api       kube.API
	journalID string
	log       *slog.Logger
	onFailure func(error)
	takeOver  func(context.Context, Content) error
	judge     func(context.Context, Content) error
	ekco      string
	// expendable are the kinds of [Expendable].
	expendable []journal.ActionKind
	// endings, end and rival belong to the goroutine in Run. end is where the
	// journal was last seen to have come to.
	endings endings
	end     journal.Position
	rival   rival
	parts   parts
	pace    pace

	mu sync.Mutex
	// wanted is the newest content, of generation wantedGen; writtenGen is the
	// generation that is in the cluster.
	wanted                Content
	wantedGen, writtenGen uint64
	// version is the one that the next write replaces; only if known.
	version string
	known   bool
	// claimed is set once the parts were listed that were there next to that version.
	claimed bool
	// covered is what the mirror in the cluster says of this journal's end, as far
	// as is known.
	covered journal.Position
	// inherited is what a mirror that was loaded or taken over says to have ended.
	inherited []EndedAction
	// knew is how far other journals are known, by their mirrors.
	knew map[string]uint64
	// held are the actions that the mirror in the cluster holds, leftOut those that found no space.
	held    map[string]journal.ActionRecord
	leftOut []string
	// failing is why the newest content is not in the cluster, since when.
	failing error
	since   time.Time

	wake  chan struct{}
	syncs chan chan error
}

// Option changes how a mirror works.
type Option func(*Mirror)

// OnFailure sets a function that is called with the error of each failed write.
// It must not block.
func OnFailure(f func(error)) Option { return func(m *Mirror) { m.onFailure = f } }

// Version names the EKCO that writes the mirror.
func Version(ekco string) Option { return func(m *Mirror) { m.ekco = ekco } }

// Expendable names the kinds of action that EKCO asks for anew by itself. Where the
// mirror has no space for all, others come first.
func Expendable(kinds ...journal.ActionKind) Option {
	return func(m *Mirror) { m.expendable = kinds }
}

// Judge sets a function that is asked whether a mirror of this very journal may
// be replaced, which somebody else than this Mirror wrote. Its error leaves the
// mirror as it is.
func Judge(f func(ctx context.Context, own Content) error) Option {
	return func(m *Mirror) { m.judge = f }
}

// Journal is where the mirror learns how far the journal has come, and which
// actions have ended. Without it, an EKCO whose actions were finished here cannot
// know, and goes through them again.
func Journal(store journal.Store) Option { return func(m *Mirror) { m.endings.store = store } }

// OnTakeover sets a function that merges the open actions of another journal.
// It is called when that journal's mirror is in the way and its EKCO has not
// changed it for [Quiet]. When f returns nil, the mirror is replaced; so by then
// f must have put on disk what it adopted, and have passed it to Update. Its
// error leaves the other's mirror as it is, and f is called again.
func OnTakeover(f func(ctx context.Context, other Content) error) Option {
	return func(m *Mirror) { m.takeOver = f }
}

// New returns a mirror of the journal with that id. Nothing is written before
// the first [Mirror.Update].
func New(api kube.API, journalID string, log *slog.Logger, options ...Option) *Mirror {
	m := &Mirror{
		api: api, journalID: journalID, log: log, onFailure: func(error) {},
		wake: make(chan struct{}, 1), syncs: make(chan chan error), knew: make(map[string]uint64),
	}
	for _, option := range options {
		option(m)
	}
	return m
}

// Read reads the mirror. It returns an error that wraps kube.ErrNotFound when
// there is none, and one that wraps [ErrOtherFormat], with what could be read,
// when a newer EKCO wrote it.
func (m *Mirror) Read(ctx context.Context) (Content, error) {
	content, _, err := m.read(ctx)
	return content, err
}

// Load is Read, and from then on lets this journal replace what it read, whoever
// wrote it, unless that was a newer EKCO.
func (m *Mirror) Load(ctx context.Context) (Content, error) {
	content, version, err := m.read(ctx)
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		return content, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.known, m.claimed = version, true, false
	m.inherit(content)
	return content, err
}

// maxReads bounds how often a mirror is read that is written at the same time.
const maxReads = 5

// read reads the index and the parts that it names. Its error wraps [ErrIncomplete], and comes with what
// could be read all the same, if a part is not there though the index stays the same.
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
			err = m.assemble(ctx, &content)
		}
		if !errors.Is(err, ErrIncomplete) {
			return content, version, err
		}
		err = fmt.Errorf("%w. EKCO starts nothing irreversible and leaves the mirror unchanged: restore those ConfigMaps, or delete %s "+
			"if you do not need the mirror", err, kube.MirrorName)
	}
	return content, version, err
}

// inherit keeps what the mirror in the cluster says. It expects mu to be held.
func (m *Mirror) inherit(content Content) {
	m.inherited = merge(content.Ended, m.inherited)
	if content.JournalID == m.journalID {
		m.covered = content.At
	}
	maps.Copy(m.knew, content.Covered)
	m.knew[content.JournalID] = content.Knew(content.JournalID)
	maps.DeleteFunc(m.knew, func(id string, seq uint64) bool { return seq == 0 || id == m.journalID })
}

// Covered is the event of this journal that the mirror in the cluster names.
// While the journal has it, its hash can be compared at the next start.
func (m *Mirror) Covered() journal.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.covered
}

// Failing returns why the newest content is not in the cluster, or nil.
func (m *Mirror) Failing() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failing
}

// Held returns the action as the mirror held it after the last write.
func (m *Mirror) Held(action string) (record journal.ActionRecord, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, is = m.held[action]
	return record, is
}

// Missing returns the ids of the open actions that the mirror in the cluster does not hold, because they
// find no space or because it cannot be written.
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

// Refresh has the mirror written again, though no action has changed: with it,
// a loss of what is on disk now will be noticed.
func (m *Mirror) Refresh() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wantedGen > 0 {
		m.wantedGen++
		m.signal()
	}
}

// signal wakes Run.
func (m *Mirror) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Update says which actions are open now, and what decides besides. It returns at once; of several
// updates only the newest is written, and one that changes nothing is not. What is passed
// must not be changed afterwards.
func (m *Mirror) Update(open []journal.ActionRecord, clusterUID string, carried journal.Carried) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wantedGen > 0 && m.wanted.ClusterUID == clusterUID && same(m.wanted.Actions, open) && maps.Equal(m.wanted.Pauses, carried.Pauses) {
		return // what else is carried changes when an action ends
	}
	m.wanted = Content{
		Version: m.ekco, JournalID: m.journalID, ClusterUID: clusterUID,
		WrittenAt: time.Now().UTC(), Actions: append([]journal.ActionRecord{}, open...), Carried: carried,
	}
	m.wantedGen++
	m.signal()
}

// same reports whether two lists hold the same actions in the same state. Every
// event of an action moves its LastSeq.
func same(x, y []journal.ActionRecord) bool {
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

// Sync waits until everything that was passed to Update before is in the
// cluster. It returns the error of a write that failed meanwhile; the mirror
// goes on trying.
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

// Between two tries to write: Update and Sync cut the rest short.
const (
	firstRest = time.Second
	lastRest  = 2 * time.Minute
)

// checkInterval is how often the mirror is read, to notice what somebody else did to it.
const checkInterval = time.Minute

// Run writes what Update says until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	rest := &backoff.ExponentialBackOff{InitialInterval: firstRest, MaxInterval: lastRest, Multiplier: 2, RandomizationFactor: 0.2}
	retry := time.NewTimer(lastRest)
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
			if !m.damaged(ctx) {
				continue
			}
		case answer := <-m.syncs:
			waiting = append(waiting, answer)
		}
		if _, _, pending := m.pending(); pending {
			if wait := m.pace.take(time.Now(), len(waiting) > 0); wait > 0 {
				retry.Reset(wait)
				continue
			}
		}
		err := m.write(ctx)
		if ctx.Err() != nil {
			return
		}
		m.note(err)
		for _, answer := range waiting {
			answer <- err
		}
		waiting = nil
		if err == nil {
			rest.Reset()
			retry.Stop()
			said = m.recovered(said)
			continue
		}
		retry.Reset(rest.NextBackOff())
		said = m.failed(err, said)
	}
}

// failed reports an error, in the log only when it is not the one said last.
func (m *Mirror) failed(err error, said string) string {
	m.onFailure(err)
	if err.Error() != said {
		m.log.Warn("the open actions are not mirrored; an EKCO on another node would not know them", "error", err)
	}
	return err.Error()
}

func (m *Mirror) recovered(said string) string {
	if said != "" {
		m.log.Info("the open actions are mirrored again")
	}
	return ""
}
