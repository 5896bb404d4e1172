package ceph

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// interactiveCommands are the commands that the client may send to an interactive ceph process. Such a process gives no
// exit codes. This table prevents changes, and has the keys of each command's answer. An answer must have these keys
// and no other key of the table, so it cannot be taken for the answer of another command.
var interactiveCommands = map[string][]string{
	"version":             {"version"},
	"status":              {"health"},
	"df":                  {"stats"},
	"osd tree":            {"nodes"},
	"osd df":              {"nodes", "summary"},
	"osd dump":            {"osds"},
	"osd crush rule dump": {"rule_id"},
	"pg dump pgs_brief":   {"pg_stats"},
	safeToDestroy:         {"safe_to_destroy"},
}

// identifyingKeys are all keys of the table.
var identifyingKeys = slices.Concat(slices.Collect(maps.Values(interactiveCommands))...)

// safeToDestroy takes ids; the other commands take no arguments.
const safeToDestroy = "osd safe-to-destroy"

// form returns the command without ids, and reports whether interactiveCommands has it.
func (c command) form() (form string, ok bool) {
	if c.changes {
		return "", false
	}
	form = strings.Join(c.args, " ")
	if ids, found := strings.CutPrefix(form, safeToDestroy+" "); found && strings.Trim(ids, "0123456789 ") == "" {
		form = safeToDestroy
	}
	_, ok = interactiveCommands[form]
	return form, ok
}

// line returns the command as a line of stdin.
func (c command) line() string { return strings.Join(c.args, " ") + "\n" }

// answeredBy reports whether the value can only be the answer of this command. If an old version of Ceph answers
// differently, the client uses one process for each command.
func (c command) answeredBy(value []byte) bool {
	form, ok := c.form()
	if !ok {
		return false
	}
	fields := make(map[string]json.RawMessage)
	if json.Unmarshal(value, &fields) != nil {
		var list []map[string]json.RawMessage
		if json.Unmarshal(value, &list) != nil || len(list) == 0 {
			return false
		}
		fields = list[0]
	}
	for _, key := range identifyingKeys {
		if _, has := fields[key]; has != slices.Contains(interactiveCommands[form], key) {
			return false
		}
	}
	return true
}

// pgDumpNotice is what ceph prints to stderr after it has answered pg dump.
const pgDumpNotice = "dumped pgs_brief"

// sharedQuery is a query that several callers may wait for.
type sharedQuery struct {
	command command
	// callersCtx ends when no caller waits for the query any more.
	callersCtx context.Context
	cancel     context.CancelFunc

	mu      sync.Mutex
	waiting int

	// sentAt is when the query was sent.
	sentAt time.Time

	done   chan struct{}
	answer []byte
	err    error
	// panicked is raised again in each waiting caller. An error would look as if Ceph did not answer, which an
	// administrator may decide to ignore.
	panicked *parallel.PanicError
}

func newSharedQuery(ctx context.Context, command command) *sharedQuery {
	asking, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	return &sharedQuery{command: command, callersCtx: asking, cancel: giveUp, waiting: 1, done: make(chan struct{})}
}

// finish gives the answer to all waiting callers.
func (q *sharedQuery) finish(answer []byte, err error, panicked *parallel.PanicError) {
	q.answer, q.err, q.panicked = answer, err, panicked
	q.cancel()
	close(q.done)
}

// addCaller adds a waiting caller. It returns false if no caller waits any more, because then the query is cancelled.
func (q *sharedQuery) addCaller() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		return false
	}
	q.waiting++
	return true
}

// isYoungerThan reports whether the query was sent less than maxAge ago.
func (q *sharedQuery) isYoungerThan(maxAge time.Duration) bool { return time.Since(q.sentAt) < maxAge }

// canBeJoined reports whether another caller may use the answer. If the query runs, it adds that caller.
func (q *sharedQuery) canBeJoined() bool {
	select {
	case <-q.done:
		return q.err == nil && q.panicked == nil
	default:
		return q.addCaller()
	}
}

// removeCaller removes a waiting caller, and reports whether it was the last.
func (q *sharedQuery) removeCaller() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	if q.waiting == 0 {
		q.cancel()
	}
	return q.waiting == 0
}
