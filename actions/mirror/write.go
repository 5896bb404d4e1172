package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// writeTimeout limits one write including the reads that it needs.
const writeTimeout = 10 * time.Second

// write puts the newest content into the cluster, unless it is already there. Only the goroutine in Run calls it.
func (m *Mirror) write(ctx context.Context) error {
	content, generation, ok := m.pendingContent()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := m.replaceMirror(ctx, content, generation)
	if other := new(otherJournalError); errors.As(err, &other) {
		if err := m.considerTakeover(ctx, *other); err != nil {
			return err
		}
		content, generation, _ = m.pendingContent() // now including the adopted actions
		err = m.replaceMirror(ctx, content, generation)
	}
	return err
}

// replaceMirror replaces the mirror if this journal may do that. It writes the parts before the index that names them,
// so that no reader sees an incomplete write.
func (m *Mirror) replaceMirror(ctx context.Context, content Content, generation uint64) error {
	version, known, claimed := m.baseVersion()
	p, written, err := plan{}, "", error(nil)
	for range 2 {
		if !known {
			claimed = false
			if version, err = m.ownVersion(ctx); err != nil {
				return err
			}
		}
		if !claimed {
			m.claimParts(ctx)
			claimed = true
			m.setBase(version, true, true)
		}
		if p, err = planWrites(m.addJournalState(ctx, content), maxSize, m.expendable, m.parts.owner, &m.parts.groups); err != nil {
			return err
		}
		if written, err = m.writePlan(ctx, p, version); !errors.Is(err, kube.ErrConflict) {
			break
		}
		known = false
		m.setBase("", false, false)
	}
	if err != nil {
		return fmt.Errorf("write the mirror of open actions: %w", err)
	}
	m.noteWritten(p.content, content.Actions, written, generation)
	m.pruneParts(ctx, p.bodies)
	return nil
}

func (m *Mirror) writePlan(ctx context.Context, p plan, version string) (written string, err error) {
	raw, err := p.encode()
	if err == nil {
		err = m.writeParts(ctx, p)
	}
	if err != nil {
		return "", err
	}
	return m.api.WriteMirror(ctx, raw, version)
}

func (m *Mirror) noteWritten(content Content, mirrored []journal.ActionRecord, version string, generation uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.known, m.claimed, m.writtenGen, m.covered = version, true, true, generation, content.At
	m.leftOut, m.held = content.LeftOut, make(map[string]journal.ActionRecord)
	for _, action := range mirrored {
		if !slices.Contains(content.LeftOut, action.ID) {
			m.held[action.ID] = action
		}
	}
}

// isDamaged reports whether another program removed or changed what this Mirror wrote, and then makes Run write it
// again. If another EKCO replaced the mirror, the next write notices that.
func (m *Mirror) isDamaged(ctx context.Context) bool {
	if _, known, claimed := m.baseVersion(); !known || !claimed || m.writtenGen == 0 {
		return false // nothing is written yet
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	content, _, err := m.read(ctx)
	gone := errors.Is(err, kube.ErrNotFound) || errors.Is(err, errGarbage)
	if !gone && (!errors.Is(err, ErrIncomplete) || content.JournalID != m.journalID) {
		return false
	}
	m.log.Warn("another program changed the mirror; EKCO writes it again", "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = false
	m.wantedGen++
	return true
}

// addJournalState adds the journal's last event on disk and the ended actions. If the journal cannot be read, the
// mirror has only the open actions.
func (m *Mirror) addJournalState(ctx context.Context, content Content) Content {
	if err := m.readJournal(ctx); err != nil {
		m.log.Warn("cannot read the journal; the mirror lacks its newest events and ended actions", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	content.Ended, content.At = merge(m.endings.list, m.inherited), m.end
	content.Covered, content.CoveredAt = maps.Clone(m.knew), maps.Clone(m.knewAt)
	content.WrittenAt = time.Now().UTC()
	return content
}

// readJournal reads the new part of the journal.
func (m *Mirror) readJournal(ctx context.Context) error {
	if m.endings.store == nil {
		return nil
	}
	end, err := journal.End(ctx, m.endings.store)
	if err != nil {
		return fmt.Errorf("read the journal's end: %w", err)
	}
	m.end = end
	return m.endings.catchUp(ctx)
}

// pendingContent returns the newest content if the cluster does not have it yet.
func (m *Mirror) pendingContent() (Content, uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted, m.wantedGen, m.wantedGen != m.writtenGen
}

func (m *Mirror) baseVersion() (version string, known, claimed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version, m.known, m.claimed
}

// ownVersion returns the version of the mirror in the cluster if this journal may replace it: it is its own mirror,
// there is none, or it is garbage.
func (m *Mirror) ownVersion(ctx context.Context) (string, error) {
	content, version, err := m.read(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound), errors.Is(err, errGarbage):
		return version, nil
	case errors.Is(err, ErrIncomplete) && content.JournalID == m.journalID:
		// This journal has the missing data, so it may replace the mirror. Below, judge refuses if the mirror knows newer events.
	case err != nil:
		return "", fmt.Errorf("before a write: %w", err)
	case content.JournalID != m.journalID:
		return "", &otherJournalError{content: content, version: version}
	}
	if m.judge != nil {
		if err := m.judge(ctx, content); err != nil {
			return "", err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inheritKnowledge(content)
	return version, nil
}

func (m *Mirror) setBase(version string, known, claimed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.known, m.claimed = version, known, claimed
}
