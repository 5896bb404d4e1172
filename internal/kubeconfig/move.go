package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/durable"
)

const (
	// answerTimeout is how long the new server may take to answer before anything is changed.
	answerTimeout = 15 * time.Second
	// confirmTimeout is how long the kubelet may take to renew its Lease through the new server. A kubelet
	// renews it every 10 s. Pods are evicted no earlier than 340 s after the last renewal (40 s until the
	// node is unreachable, and 300 s of toleration).
	confirmTimeout = time.Minute
)

// RestoreTimeout is how long it may take to restore the files and to restart the kubelet.
const RestoreTimeout = time.Minute

// MoveTimeout is the longest time that [Move.Do] takes, if a restart takes no more than a minute.
const MoveTimeout = 2*answerTimeout + time.Minute + confirmTimeout + RestoreTimeout

// Move points the kubelet of a host to another API server. If that does not work, it points the kubelet back: a node
// whose kubelet reaches no API server cannot be repaired through the API.
type Move struct {
	// Files get the new server.
	Files  []File
	Server string
	// Restart restarts the kubelet, and returns when it is active again.
	Restart func(context.Context) error
	// LeaseRenewed returns when the kubelet last renewed its Lease, according to the API server at an address.
	LeaseRenewed func(ctx context.Context, server string) (time.Time, error)
}

// Do changes the files and returns the changes of each, after the kubelet has renewed its Lease through the new server.
// It fails without a change if no API server of the kubelet's cluster answers there. If the kubelet does not renew its
// Lease within a minute, or ctx ends first, Do restores the files, restarts the kubelet again, and fails.
func (m Move) Do(ctx context.Context) ([][]Change, error) {
	recovered, err := m.recover(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.await(ctx, m.Server, answerTimeout, time.Time{}); err != nil {
		err = fmt.Errorf("no API server of this cluster answers at %s, so nothing was changed: %w", Redacted(m.Server), err)
		if recovered { // and the kubelet may have started with the server of the interrupted change
			err = errors.Join(fmt.Errorf("%w; the server before an interrupted change was restored", err), m.Restart(ctx))
		}
		return nil, err
	}
	moved := move{Move: m, former: formerOf(m.Files)}
	err = moved.change()
	if err == nil {
		moved.restarted = true
		if err = m.Restart(ctx); err == nil {
			err = m.await(ctx, m.Server, confirmTimeout, time.Now()) // a renewal by the former process does not count
		}
	}
	if err != nil {
		return nil, moved.restore(ctx, fmt.Errorf("cannot point the kubelet to the API server at %s: %w", Redacted(m.Server), err))
	}
	return moved.changes, RemoveFormer(m.Files)
}

// recover restores the files after an interrupted change, and reports whether they had other content. But if the
// kubelet works with the new server of that change, recover writes that server into all files, because the former
// server may be gone.
func (m Move) recover(ctx context.Context) (recovered bool, err error) {
	former, interrupted := formerOf(m.Files), false
	for _, file := range former {
		changed, err := file.Interrupted()
		if err != nil {
			return false, err
		}
		interrupted = interrupted || !changed.IsZero()
	}
	if !interrupted {
		return false, nil
	}
	if present, err := m.Files[0].server(); err == nil && m.await(ctx, present, answerTimeout, time.Now()) == nil {
		for _, file := range m.Files {
			if _, err := file.SetServer(present); err != nil {
				return false, err
			}
		}
		return false, RemoveFormer(m.Files)
	}
	for _, file := range former {
		restored, err := file.Recover()
		if err != nil {
			return false, err
		}
		recovered = recovered || restored
	}
	return recovered, nil
}

// await waits until the API server shows a Lease that the kubelet renewed after since.
func (m Move) await(ctx context.Context, server string, timeout time.Duration, since time.Time) error {
	return await(ctx, timeout, func(ctx context.Context) error {
		renewed, err := m.LeaseRenewed(ctx, server)
		if err == nil && !renewed.After(since) {
			err = fmt.Errorf("the kubelet last renewed its Lease at %s", renewed.UTC().Format(time.RFC3339))
		}
		return err
	})
}

// move is a [Move] under way.
type move struct {
	Move
	former  []*durable.FormerFile
	changes [][]Change
	// restarted is set when the kubelet may have read the new server.
	restarted bool
}

func (m *move) change() error {
	for i, file := range m.Files {
		if err := m.former[i].Keep(); err != nil {
			return err
		}
		changes, err := file.SetServer(m.Server)
		if err != nil {
			return err
		}
		m.changes = append(m.changes, changes)
		if err := m.former[i].Changed(); err != nil {
			return err
		}
	}
	return nil
}

// restore undoes the change, even if ctx has ended. It returns cause, joined with its own error if it fails.
func (m *move) restore(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RestoreTimeout)
	defer cancel()
	var failed error
	restored := false
	for _, former := range m.former {
		written, err := former.Restore()
		failed, restored = errors.Join(failed, err), restored || written
	}
	if restored && m.restarted {
		failed = errors.Join(failed, m.Restart(ctx))
	}
	if failed == nil {
		failed = RemoveFormer(m.Files)
	}
	if failed != nil {
		return fmt.Errorf("%w; the former server could not be restored: %w; copies of the former files end in %s", cause, failed, durable.FormerSuffix)
	}
	return fmt.Errorf("%w; the former server was restored in its kubeconfigs", cause)
}

// formerOf returns the copy of each file. The copies remain until the kubelet works with the new server.
func formerOf(files []File) (former []*durable.FormerFile) {
	for _, file := range files {
		former = append(former, &durable.FormerFile{Path: file.Path, CopyPath: file.Path + durable.FormerSuffix, Limit: largest})
	}
	return former
}

// RemoveFormer removes the copies of files, once the kubelet works with its server.
func RemoveFormer(files []File) (failed error) {
	for _, former := range formerOf(files) {
		failed = errors.Join(failed, former.Discard())
	}
	return failed
}
