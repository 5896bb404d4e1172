package api

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/journal"
)

// mostFollowers is how many may follow what happens at once. When a client of "kubectl exec"
// is gone, its command stays in EKCO's pod and is told nothing: without input it sees no end of
// it, and its output goes into a pipe that nobody closes. Each is 7 MiB of the 128 MiB that
// the pod may have.
const mostFollowers = 6

// ErrCrowded ends the stream of who follows what happens, and has done so for longest.
var ErrCrowded = errors.New("so many others follow what happens that this, the oldest, was ended; follow again if somebody still reads it")

// followers are the streams that go on until somebody ends them.
type followers struct {
	mu sync.Mutex
	// all begins with the oldest.
	all []*following
}

// following is one of them.
type following struct {
	// action is the one that is followed, or "" for all that happens.
	action string
	end    context.CancelCauseFunc
}

// enter counts a stream among those that follow until leave is called. If there are too many,
// the oldest is ended, but none that follows an action under way: it ends with that, and
// is perhaps a command whose exit code somebody waits for. Open says whether one is.
func (f *followers) enter(ctx context.Context, action string, open func(context.Context) (func(action string) bool, error)) (watched context.Context, leave func()) {
	watched, end := context.WithCancelCause(ctx)
	own := &following{action: action, end: end}
	f.mu.Lock()
	f.all = append(f.all, own)
	crowded := len(f.all) > mostFollowers
	f.mu.Unlock()
	if crowded {
		f.endOldest(ctx, own, open)
	}
	return watched, func() {
		f.leave(own)
		end(nil)
	}
}

// endOldest ends the oldest that may be ended, if it is not the newcomer. Where nobody says which
// actions are open, none is ended.
func (f *followers) endOldest(ctx context.Context, newcomer *following, open func(context.Context) (func(action string) bool, error)) {
	isOpen, err := open(ctx)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) <= mostFollowers { // one has left meanwhile
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

func (f *followers) leave(own *following) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(one *following) bool { return one == own })
}

// openActions says which actions are under way.
func (s *server) openActions(ctx context.Context) (open func(action string) bool, err error) {
	status, err := s.backend.Status(ctx)
	if err != nil {
		return nil, err
	}
	return func(action string) bool {
		return slices.ContainsFunc(status.Actions, func(one journal.ActionRecord) bool { return one.ID == action })
	}, nil
}
