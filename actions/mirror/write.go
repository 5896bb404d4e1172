package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
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
	raw, err := m.encoded(ctx, content)
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
	m.version, m.known, m.writtenGen = written, true, generation
	return nil
}

// encoded adds what has ended. That cannot be read is no reason not to mirror
// what is open.
func (m *Mirror) encoded(ctx context.Context, content Content) ([]byte, error) {
	if err := m.endings.catchUp(ctx); err != nil {
		m.log.Warn("the mirror does not say which actions have ended", "error", err)
	}
	m.mu.Lock()
	content.Ended = merge(m.endings.list, m.inherited)
	m.mu.Unlock()
	content.WrittenAt = time.Now().UTC()
	return encode(content, maxSize)
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

// ownVersion returns the version of the mirror in the cluster, if it is this
// journal's or there is none, and ErrOtherJournal otherwise. What cannot be
// read at all is nobody's.
func (m *Mirror) ownVersion(ctx context.Context) (string, error) {
	raw, version, err := m.api.ReadMirror(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the mirror of open actions before writing it: %w", err)
	}
	content, err := parse(raw)
	if errors.Is(err, ErrOtherFormat) || (err == nil && content.JournalID != m.journalID) {
		return "", &otherJournalError{content: content, version: version, unread: err}
	}
	return version, nil
}
