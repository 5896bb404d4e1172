package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// maxRolloutGap is the longest pause between two actions of a rollout.
const maxRolloutGap = 5 * time.Minute

// rollout is a change of several nodes by one action for each node. No event names the actions of a rollout. They are
// the actions of one kind with the same target, if between two of them there is neither another target nor a pause
// above maxRolloutGap.
type rollout struct {
	kind   journal.ActionKind
	target string
	dryRun bool
	lines  []*digestLine
	// blocked is the last refusal of further actions during the rollout, or nil.
	blocked *digestLine
	// closed is true once the tree has printed the rollout. No later event may join it, even if the clock was set back.
	closed bool
}

// joinRollout adds an action to its rollout, if it belongs to one.
func (d *digest) joinRollout(line *digestLine, subject journal.Subject, p *journal.ActionRequested) {
	target := d.words.RolloutTarget(p)
	if target == "" || line.rollout != nil {
		return
	}
	r := d.rollouts[p.Kind]
	if r.isOver(line.began) || r.target != target || r.dryRun != p.DryRun {
		r = &rollout{kind: p.Kind, target: target, dryRun: p.DryRun}
		d.rollouts[p.Kind] = r
	}
	line.rollout, line.subject = r, subject
	r.lines = append(r.lines, line)
}

// setBlocked records that further actions are refused. A refusal by OneAtATime has no line of its own.
func (r *rollout) setBlocked(line *digestLine, rule string) {
	if r.isOver(line.began) {
		return
	}
	if r.blocked = line; rule == fsm.RuleOneAtATime {
		line.rollout = r
	}
}

// isOver reports whether no further action can belong to the rollout.
func (r *rollout) isOver(now time.Time) bool {
	lasts := func(line *digestLine) bool { return !line.over || now.Sub(line.ended) <= maxRolloutGap }
	return r == nil || r.closed || !slices.ContainsFunc(r.lines, lasts) && (r.blocked == nil || !lasts(r.blocked))
}

// isShown reports whether the rollout is shown as one entry. A rollout of one action is shown as an ordinary action.
func (r *rollout) isShown() bool { return r != nil && len(r.lines) > 1 }

// headline summarizes the rollout. If a node has several actions, the last one counts.
func (d *digest) headline(r *rollout) *digestLine {
	slices.SortStableFunc(r.lines, byBegan)
	nodes := map[journal.Subject]*digestLine{}
	for _, line := range r.lines {
		nodes[line.subject] = line
	}
	verb, noun, waits := d.words.Rollout(r.kind)
	head := &digestLine{began: r.lines[0].began, what: fmt.Sprintf("%s the %s on %s%s", verb, noun, words.Count(len(nodes), "node"), words.Because(r.target))}
	if r.dryRun {
		head.what = "dry run: " + head.what
	}
	for _, line := range r.lines {
		head.ended = later(head.ended, line.ended)
	}
	done, running, held, failed := r.countActions(nodes)
	stalled := failed != nil && !failed.over
	waiting := d.countWaiting(r, nodes, waits)
	var how, without, why string
	if failed != nil {
		without, why = " without "+failed.subject.Name, failed.outcome
	}
	blocked := r.blocked != nil && !r.blocked.over
	switch head.tone = bad; {
	case running > 0, held == nil && waiting > 0 && !stalled && !blocked && !r.isOver(d.now):
		how, head.tone = "going on"+without, doubtful
	case stalled:
		how = "stopped at " + failed.subject.Name
	case blocked:
		how, why = "stopped", r.blocked.why
	case held != nil:
		how, why, head.tone = "waits"+without, strings.TrimPrefix(held.outcome, "waits: "), doubtful
	case failed != nil:
		how, head.over = "ended"+without, true
	default:
		head.end(head.ended, map[bool]string{true: "nothing was changed", false: "all done"}[r.dryRun], good)
		return head
	}
	head.outcome = fmt.Sprintf("%s, %d of %d done%s", how, done, len(nodes)+waiting, words.Because(why))
	return head
}

// countActions returns the number of nodes that are done and of running actions. It also returns a held action, and a
// stalled or failed action, or nil. A stalled action comes before a failed one, because a person can retry it.
func (r *rollout) countActions(nodes map[journal.Subject]*digestLine) (done, running int, held, failed *digestLine) {
	for _, line := range r.lines {
		switch {
		case nodes[line.subject] != line: // only the last action on a node counts
		case line.over && line.tone == good:
			done++
		case !line.over && line.tone != bad:
			if line.held {
				held = line
			} else {
				running++
			}
		case failed == nil || failed.over && !line.over:
			failed = line
		}
	}
	return done, running, held, failed
}

// countWaiting returns how many nodes still wait for an action of the rollout. It returns 0 if a newer rollout has
// begun.
func (d *digest) countWaiting(r *rollout, nodes map[journal.Subject]*digestLine, waits journal.State) (n int) {
	if d.rollouts[r.kind] != r {
		return 0
	}
	for subject, state := range d.states {
		if state == waits && subject.Kind == r.lines[0].subject.Kind && nodes[subject] == nil {
			n++
		}
	}
	return n
}

// entries returns the lines of the rollout: its headline, and one line for each action.
func (d *digest) entries(r *rollout) []*digestLine {
	shown := []*digestLine{d.headline(r)}
	for i, line := range r.lines {
		entry := *line
		entry.what = branchSymbol(i, len(r.lines)) + " " + line.what
		shown = append(shown, &entry)
	}
	return shown
}

// branchText returns the rollout as a branch of a tree, with a twig for each action.
func (d *digest) branchText(r *rollout, because string) string {
	entries := d.entries(r)
	var rows [][]cell
	for _, line := range entries[1:] {
		rows = append(rows, []cell{{text: "   " + Clean(line.what)}, {text: d.tookText(line)}, {text: d.zone.convertTimes(Clean(line.outcome)), tone: line.tone}})
	}
	head := entries[0]
	first := []cell{{text: d.beganText(head)}, {text: d.tookText(head)}, {text: Clean(head.what)}, {text: d.zone.convertTimes(Clean(head.outcome)), tone: head.tone}}
	return strings.Join(alignCells([][]cell{first}, d.style), "") + "\n" + because + strings.Join(alignCells(rows, d.style), "\n") + "\n"
}
