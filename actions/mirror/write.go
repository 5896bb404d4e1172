package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// writeTimeout bounds one write with the reads it needs.
const writeTimeout = 10 * time.Second

// write puts the newest content into the cluster unless it is there. Only the
// goroutine in Run calls it.
func (m *Mirror) write(ctx context.Context) error {
	content, generation, ok := m.pending()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := m.put(ctx, content, generation)
	if other := new(otherJournalError); errors.As(err, &other) {
		if err := m.considerTakeover(ctx, *other); err != nil {
			return err
		}
		content, generation, _ = m.pending() // with what was adopted
		err = m.put(ctx, content, generation)
	}
	return err
}

// put replaces the mirror by the content, if it is this journal's to replace.
func (m *Mirror) put(ctx context.Context, content Content, generation uint64) error {
	content = m.completed(ctx, content)
	raw, err := encode(content, maxSize, m.expendable)
	if err != nil {
		return err
	}
	version, known := m.base()
	if !known {
		if version, err = m.ownVersion(ctx); err != nil {
			return err
		}
	}
	written, err := m.api.WriteMirror(ctx, raw, version)
	if errors.Is(err, kube.ErrConflict) {
		if version, err = m.ownVersion(ctx); err == nil {
			written, err = m.api.WriteMirror(ctx, raw, version)
		}
	}
	if err != nil {
		return fmt.Errorf("write the mirror of open actions: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.known, m.writtenGen, m.covered = written, true, generation, content.At
	return nil
}

// completed adds how far the journal has come on disk, and what has ended. That
// either cannot be read is no reason not to mirror what is open.
func (m *Mirror) completed(ctx context.Context, content Content) Content {
	if err := m.look(ctx); err != nil {
		m.log.Warn("the mirror does not say which actions have ended, or how far the journal has come", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	content.Ended, content.At = merge(m.endings.list, m.inherited), m.end
	content.WrittenAt = time.Now().UTC()
	return content
}

// look reads the journal as far as it has not been read.
func (m *Mirror) look(ctx context.Context) error {
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

// pending returns the newest content if it is not in the cluster yet.
func (m *Mirror) pending() (Content, uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted, m.wantedGen, m.wantedGen != m.writtenGen
}

func (m *Mirror) base() (version string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version, m.known
}

// ownVersion returns the version of the mirror in the cluster, if this journal
// may replace it or there is none. What cannot be read at all is nobody's.
func (m *Mirror) ownVersion(ctx context.Context) (string, error) {
	content, version, err := m.read(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound), errors.Is(err, errGarbage):
		return version, nil
	case err != nil:
		return "", fmt.Errorf("before writing it: %w", err)
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
	m.inherit(content)
	return version, nil
}
