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

// interactive are the commands that the client may send to a ceph process that reads them from its input. There
// are no exit codes there, and nothing but this table prevents a change. Of all identifying keys, an answer
// must have exactly those listed with its command, so it cannot be mistaken for that of another command.
var interactive = map[string][]string{
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

// identifying are all keys that distinguish answers.
var identifying = slices.Concat(slices.Collect(maps.Values(interactive))...)

// safeToDestroy takes ids; the other commands take no arguments.
const safeToDestroy = "osd safe-to-destroy"

// form returns the command without ids, and whether the table has it.
func (c command) form() (form string, ok bool) {
	if c.changes {
		return "", false
	}
	form = strings.Join(c.args, " ")
	if ids, found := strings.CutPrefix(form, safeToDestroy+" "); found && strings.Trim(ids, "0123456789 ") == "" {
		form = safeToDestroy
	}
	_, ok = interactive[form]
	return form, ok
}

// line returns the command as an input line.
func (c command) line() string { return strings.Join(c.args, " ") + "\n" }

// answeredBy reports whether the value has the form of this command's answer, and of no other's. Old versions
// of Ceph whose answers differ are queried with one process for each command.
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
	for _, key := range identifying {
		if _, has := fields[key]; has != slices.Contains(interactive[form], key) {
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
	// asking ends when no caller waits any more.
	asking context.Context
	giveUp context.CancelFunc

	mu      sync.Mutex
	waiting int

	// put is when the query was sent.
	put time.Time

	over   chan struct{}
	answer []byte
	err    error
	// panicked is raised again in each waiting caller: as an error it would look like a Ceph that does not
	// answer, which a person may decide to ignore.
	panicked *parallel.PanicError
}

func newSharedQuery(ctx context.Context, command command) *sharedQuery {
	asking, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	return &sharedQuery{command: command, asking: asking, giveUp: giveUp, waiting: 1, over: make(chan struct{})}
}

// end gives the answer to all that wait.
func (q *sharedQuery) end(answer []byte, err error, panicked *parallel.PanicError) {
	q.answer, q.err, q.panicked = answer, err, panicked
	q.giveUp()
	close(q.over)
}

// enter adds a waiting caller. It reports false if all have left.
func (q *sharedQuery) enter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		return false
	}
	q.waiting++
	return true
}

// young reports whether the query was sent less than maxAge ago.
func (q *sharedQuery) young(maxAge time.Duration) bool { return time.Since(q.put) < maxAge }

// serves reports whether another caller may use the answer, or wait for it.
func (q *sharedQuery) serves() bool {
	select {
	case <-q.over:
		return q.err == nil && q.panicked == nil
	default:
		return q.enter()
	}
}

// leave removes a waiting caller, and reports whether it was the last.
func (q *sharedQuery) leave() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	if q.waiting == 0 {
		q.giveUp()
	}
	return q.waiting == 0
}
