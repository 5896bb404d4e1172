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

// conversable are the commands that may be put to a ceph process that reads them
// from its input, where no exit code tells one from another, and where nothing
// keeps a line from being a change but this table. Each has those of the telling keys
// that its answer has, as that of no other command here has: so no answer can pass for
// that of another question.
var conversable = map[string][]string{
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

// telling are all keys by which answers are told apart.
var telling = slices.Concat(slices.Collect(maps.Values(conversable))...)

// safeToDestroy is followed by ids; the others by nothing.
const safeToDestroy = "osd safe-to-destroy"

// form returns the command as it is in the table, if it is there.
func (c command) form() (form string, ok bool) {
	if c.changes {
		return "", false
	}
	form = strings.Join(c.args, " ")
	if ids, found := strings.CutPrefix(form, safeToDestroy+" "); found && strings.Trim(ids, "0123456789 ") == "" {
		form = safeToDestroy
	}
	_, ok = conversable[form]
	return form, ok
}

// line returns the command as ceph reads it from its input.
func (c command) line() string { return strings.Join(c.args, " ") + "\n" }

// answeredBy reports whether the value has the form of this command's answer, and
// of no other's. Answers of old versions that have another one are asked for one by
// one.
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
	for _, key := range telling {
		if _, has := fields[key]; has != slices.Contains(conversable[form], key) {
			return false
		}
	}
	return true
}

// remark is what ceph writes to stderr when it has answered pg dump.
const remark = "dumped pgs_brief"

// question is one that several may wait for.
type question struct {
	command command
	// asking ends when nobody waits any more.
	asking context.Context
	giveUp context.CancelFunc

	mu      sync.Mutex
	waiting int

	// put is when Ceph was asked.
	put time.Time

	over   chan struct{}
	answer []byte
	err    error
	// panicked is raised again where the answer is awaited: as an error it would
	// pass for a Ceph that does not answer, which a person may decide to ignore.
	panicked *parallel.PanicError
}

func newQuestion(ctx context.Context, command command) *question {
	asking, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	return &question{command: command, asking: asking, giveUp: giveUp, waiting: 1, over: make(chan struct{})}
}

// end gives those who wait their answer.
func (q *question) end(answer []byte, err error, panicked *parallel.PanicError) {
	q.answer, q.err, q.panicked = answer, err, panicked
	q.giveUp()
	close(q.over)
}

// enter reports whether one more may wait: not where all have left.
func (q *question) enter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		return false
	}
	q.waiting++
	return true
}

// young reports whether Ceph was asked less than maxAge ago.
func (q *question) young(maxAge time.Duration) bool { return time.Since(q.put) < maxAge }

// serves reports whether one more gets the answer that there is, or may wait for it.
func (q *question) serves() bool {
	select {
	case <-q.over:
		return q.err == nil && q.panicked == nil
	default:
		return q.enter()
	}
}

// leave reports whether the last one left.
func (q *question) leave() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	if q.waiting == 0 {
		q.giveUp()
	}
	return q.waiting == 0
}
