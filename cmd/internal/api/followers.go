package api

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/journal"
)

// maxFollowers is the maximum number of clients that follow events at the same time. When a client of "kubectl exec"
// exits, its command stays in EKCO's pod: it reads no input, so it does not notice, and its output goes into a pipe
// that stays open. Each such command takes 7 MiB of the pod's 128 MiB.
const maxFollowers = 6

// ErrCrowded is the error of the oldest stream that follows events, if there are too many.
var ErrCrowded = errors.New("too many clients follow events, so this oldest stream was ended; to continue, run the command again")

// followers has the streams that follow events.
type followers struct {
	mu sync.Mutex
	// all is sorted, oldest first.
	all []*followedStream
}

// followedStream is one stream that follows events.
type followedStream struct {
	// action is the id of the followed action, or "" for all events.
	action string
	end    context.CancelCauseFunc
}

// enter registers a stream until leave is called. If there are too many streams, it ends the oldest that follows no
// open action. The others end with their actions, and scripts may wait for the exit codes of their commands. open
// returns a function that reports whether an action is open.
func (f *followers) enter(ctx context.Context, action string, open func(context.Context) (func(action string) bool, error)) (watched context.Context, leave func()) {
	watched, end := context.WithCancelCause(ctx)
	own := &followedStream{action: action, end: end}
	f.mu.Lock()
	f.all = append(f.all, own)
	crowded := len(f.all) > maxFollowers
	f.mu.Unlock()
	if crowded {
		f.endOldest(ctx, own, open)
	}
	return watched, func() {
		f.leave(own)
		end(nil)
	}
}

// endOldest ends the oldest stream that may be ended, except the newcomer. If it cannot read which actions are open, it
// ends no stream.
func (f *followers) endOldest(ctx context.Context, newcomer *followedStream, open func(context.Context) (func(action string) bool, error)) {
	isOpen, err := open(ctx)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) <= maxFollowers { // a stream has ended since
		return
	}
	for i, one := range f.all {
		if one != newcomer && !isOpen(one.action) {
			one.end(ErrCrowded)
			f.all = slices.Delete(f.all, i, i+1)
			return
		}
	}
}

func (f *followers) leave(own *followedStream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(one *followedStream) bool { return one == own })
}

// openActions returns a function that reports whether an action is open.
func (s *server) openActions(ctx context.Context) (open func(action string) bool, err error) {
	status, err := s.backend.Status(ctx)
	if err != nil {
		return nil, err
	}
	return func(action string) bool {
		return slices.ContainsFunc(status.Actions, func(one journal.ActionRecord) bool { return one.ID == action })
	}, nil
}
