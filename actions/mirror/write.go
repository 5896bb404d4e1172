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
	raw, err := encode(content, maxSize)
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
		return "", fmt.Errorf("the mirror is of journal %q (written %s), this one is %q: %w; is a second EKCO running?",
			content.JournalID, content.WrittenAt.Format(time.RFC3339), m.journalID, ErrOtherJournal)
	}
	return version, nil
}
