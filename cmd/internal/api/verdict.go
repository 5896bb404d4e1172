package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Overall is the verdict on the whole status.
type Overall string

// The verdicts, from good to bad.
const (
	// OverallOK means that EKCO has nothing to do, and there are no problems.
	OverallOK Overall = "ok"
	// OverallWorking means that EKCO works, or waits for something without the need of a person.
	OverallWorking Overall = "working"
	// OverallPaused means that a person paused the whole cluster less than a day ago, and that the pause holds no
	// action.
	OverallPaused Overall = "paused"
	// OverallNeedsYou means that something needs a person.
	OverallNeedsYou Overall = "needs_you"
)

// ProblemKind is the kind of a problem, for programs.
type ProblemKind string

// These are the kinds of problems.
const (
	ProblemJournalNotOpen    ProblemKind = "journal_not_open"
	ProblemSafeMode          ProblemKind = "safe_mode"
	ProblemJournalUnwritable ProblemKind = "journal_unwritable"
	ProblemNotRunning        ProblemKind = "not_running"
	ProblemAPIUnreachable    ProblemKind = "api_unreachable"
	ProblemClock             ProblemKind = "clock"
	ProblemStalled           ProblemKind = "stalled"
	ProblemUnreadable        ProblemKind = "unreadable"
	ProblemHeld              ProblemKind = "held"
	ProblemNodeLost          ProblemKind = "node_lost"
	ProblemBlocked           ProblemKind = "blocked"
	ProblemPaused            ProblemKind = "paused"
	ProblemMirror            ProblemKind = "mirror"
	ProblemDefect            ProblemKind = "defect"
	ProblemNeedsPerson       ProblemKind = "needs_person"
)

// Problem describes one problem.
type Problem struct {
	Kind ProblemKind `json:"kind"`
	// NeedsYou is true if the problem does not end without a person.
	NeedsYou bool `json:"needs_you"`
	// Thing is the KIND/NAME of the thing with the problem, or "" if EKCO itself has it.
	Thing string `json:"thing"`
	// Since is when the problem began; nil if unknown.
	Since *time.Time `json:"since"`
	// Reason, Advice and Command are for persons: what is wrong, what to do, and which command to run first.
	Reason  string `json:"reason"`
	Advice  string `json:"advice"`
	Command string `json:"command"`
}

// apiGrace is how long the Kubernetes API may be silent before a person is needed. An API server that restarts answers
// again in less time.
const apiGrace = 5 * time.Minute

// Judge sets the problems and the verdict of a status that is otherwise complete. Problems that need a person come
// first. verb returns the name of a kind of action.
func Judge(status *Status, verb func(journal.ActionKind) string) {
	problems := slices.Concat([]Problem{}, journalProblems(status), operatorProblems(status), pauseProblems(status), mirrorProblems(status),
		actionProblems(status, verb), nodeProblems(status), thingProblems(status), refusalProblems(status, verb), defectProblems(status))
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(problemRank(a), problemRank(b)) })
	status.Problems, status.Verdict = problems, OverallOK
	switch {
	case len(problems) > 0 && problems[0].NeedsYou:
		status.Verdict = OverallNeedsYou
	case isPaused(status):
		status.Verdict = OverallPaused
	case len(problems) > 0 || len(status.Actions) > 0 || status.Starting != nil:
		status.Verdict = OverallWorking
	}
}

func problemRank(p Problem) int {
	if p.NeedsYou {
		return 0
	}
	return 1
}

func journalProblems(status *Status) (problems []Problem) {
	j := status.Journal
	if u := j.Unopened; u != nil {
		return []Problem{{
			Kind: ProblemJournalNotOpen, NeedsYou: true, Since: timeOrNil(u.Since), Reason: "the journal is not open, so EKCO only observes: " + u.Problem,
			Advice:  "EKCO leaves the file unchanged and retries at " + words.Stamp(u.NextTry),
			Command: "ekco journal verify",
		}}
	}
	if what := safeModeReason(j); what != "" {
		problems = append(problems, Problem{
			Kind: ProblemSafeMode, NeedsYou: true, Since: timeOrNil(j.SafeModeSince), Reason: what,
			Advice: "the command lists what EKCO will continue, and asks on a terminal; then EKCO works again", Command: "ekco journal accept",
		})
	}
	if !j.Writable && j.Error != "" {
		problem := Problem{
			Kind: ProblemJournalUnwritable, NeedsYou: true, Since: timeOrNil(j.UnwritableSince), Reason: "the journal cannot be written, so EKCO does nothing: " + j.Error,
			Advice: journal.UnwritableAdvice(j.FileReplaced), Command: "df -h " + cmp.Or(j.Path, "/var/lib/ekco"),
		}
		if j.FileReplaced {
			problem.Reason = "the journal's file was deleted or replaced, so EKCO does nothing: " + j.Error
			problem.Command = "kubectl -n kurl rollout restart deployment ekc-operator"
		}
		problems = append(problems, problem)
	}
	return problems
}

// mirrorProblems must be listed after an outage of the API, which may be their cause.
func mirrorProblems(status *Status) []Problem {
	reason := "open actions cannot be mirrored in the cluster: " + status.Mirror
	switch {
	case status.Mirror != "":
	case len(status.NotMirrored) > 0:
		reason = "the mirror in the cluster has no space for " + strings.Join(status.NotMirrored, ", ")
	default:
		return nil
	}
	return []Problem{{Kind: ProblemMirror, Reason: reason, Advice: "EKCO retries; until the mirror is written, an EKCO on another machine would not know these actions"}}
}

// safeModeReason returns the reason why EKCO is in safe mode, or "". A damaged journal usually lacks its newest events,
// too.
func safeModeReason(j JournalStatus) string {
	switch {
	case j.SafeMode != nil && j.SafeMode.Recovered == 0:
		return "the journal was damaged and its events are lost, so EKCO only observes" + words.Because(j.SafeMode.Problem)
	case j.SafeMode != nil && j.Outdated != nil:
		return "the journal was damaged and lost its newest events, so EKCO only observes" + words.Because(j.SafeMode.Problem)
	case j.SafeMode != nil:
		return "the journal was damaged, so EKCO only observes" + words.Because(j.SafeMode.Problem)
	case j.Outdated != nil && j.Outdated.Gone != "":
		return "the journal that EKCO wrote on this machine is gone, so EKCO only observes"
	case j.Outdated != nil:
		return "the journal lost its newest events, so EKCO only observes"
	}
	return ""
}

func operatorProblems(status *Status) (problems []Problem) {
	o := status.Operator
	if !o.Running && o.PID == 0 {
		since, reason := o.StartedAt, "no operator runs: the last one did not stop in order"
		if status.Journal.LastTime.After(since) {
			since = status.Journal.LastTime // EKCO ran until then
		}
		switch {
		case o.StartedAt.IsZero():
			since, reason = time.Time{}, "no operator has ever run with this journal"
		case o.StoppedAt.After(o.StartedAt):
			since, reason = o.StoppedAt, "no operator runs: the last one stopped"
		}
		problems = append(problems, Problem{
			Kind: ProblemNotRunning, NeedsYou: true, Since: timeOrNil(since), Reason: reason,
			Advice: "see why its pod does not run, or whether an installer stopped it", Command: "kubectl -n kurl get deployment,pods -l app=ekc-operator",
		})
	}
	if lost := status.API.LostAt; !lost.IsZero() && o.Running {
		reason := "the Kubernetes API does not answer"
		if status.API.Error != "" {
			reason += ": " + status.API.Error
		}
		problems = append(problems, Problem{
			Kind: ProblemAPIUnreachable, NeedsYou: status.Now.Sub(lost) >= apiGrace, Since: timeOrNil(lost), Reason: reason,
			Advice: "EKCO continues automatically when it answers again", Command: "kubectl get --raw /readyz?verbose",
		})
	}
	if ahead := status.Clock.APIAhead; ahead != 0 {
		problems = append(problems, Problem{
			Kind: ProblemClock, NeedsYou: true, Since: timeOrNil(o.StartedAt), Reason: "the clock of EKCO's machine is " + words.Apart(ahead),
			Advice: "set the clock that is wrong, then restart EKCO", Command: "timedatectl",
		})
	}
	return problems
}

// pausedTooLong is the age at which a pause of everything was probably forgotten.
const pausedTooLong = 24 * time.Hour

// isPaused reports whether EKCO is paused for the whole cluster.
func isPaused(status *Status) bool {
	_, everything := status.Pauses[""]
	return everything
}

// pauseProblems returns a problem for the pause of everything, and for each other pause that holds an action.
func pauseProblems(status *Status) (problems []Problem) {
	for _, key := range slices.Sorted(maps.Keys(status.Pauses)) {
		pause, word, holds := status.Pauses[key], "", holdsActions(status, key)
		if key != "" && !holds {
			continue
		}
		problem := Problem{Kind: ProblemPaused, NeedsYou: holds && pause.Until.IsZero(), Since: timeOrNil(pause.At)}
		reason := "EKCO does nothing"
		if key == "" {
			problem.NeedsYou = holds || status.Now.Sub(pause.At) >= pausedTooLong
		} else {
			problem.Thing, word = pausedThing(key), " "+key
			reason = "EKCO does nothing about " + problem.Thing
		}
		problem.Reason = fmt.Sprintf("%s since %s (by %s: %q)", reason, words.Stamp(pause.At), pause.By, pause.Reason)
		problem.Command = "ekco resume" + word
		problem.Advice = "to end the pause: " + problem.Command
		if !pause.Until.IsZero() {
			problem.Advice = fmt.Sprintf("it ends at %s; to end it now: %s", words.Stamp(pause.Until), problem.Command)
		}
		problems = append(problems, problem)
	}
	return problems
}

// pausedThing returns the KIND/NAME of a key in [Status.Pauses].
func pausedThing(key string) string {
	if strings.Contains(key, "/") {
		return key
	}
	return fsmnode.Machine + "/" + key
}

// holdsActions reports whether a pause prevents an action that is due, or may be due later.
func holdsActions(status *Status, key string) bool {
	of := func(rule string, subject journal.Subject) bool {
		return rule == fsm.RulePaused && (key == "" || thingName(subject) == pausedThing(key))
	}
	return slices.ContainsFunc(status.Next, func(u fsm.Upcoming) bool { return of(u.Rule, u.Subject) }) ||
		slices.ContainsFunc(status.Refusals, func(r fsm.Refusal) bool { return of(r.Rule, r.Subject) })
}

func actionProblems(status *Status, verb func(journal.ActionKind) string) (problems []Problem) {
	for _, action := range status.Actions {
		problem := Problem{Thing: thingName(action.Subject), Command: "ekco explain " + action.ID}
		what := actionText(verb(action.Kind), action.Subject)
		others, waits := heldByOthers(status.Now, status.Progress[action.ID])
		switch step, hold, needy := gravestHold(status.Now, action); {
		case action.Unreadable != "":
			problem.Kind, problem.NeedsYou = ProblemUnreadable, true
			problem.Reason, problem.Advice = what+" cannot be read by this EKCO: "+action.Unreadable, "run the newer EKCO that wrote it"
		case action.Stalled != nil:
			problem.Kind, problem.NeedsYou, problem.Since = ProblemStalled, true, timeOrNil(action.StalledAt)
			problem.Reason = fmt.Sprintf("%s is stalled at %s: %s", what, action.Stalled.Step, action.Stalled.Reason)
			problem.Advice = "after repairing the cause, run: ekco retry " + action.ID + NextTryHint(action)
		case others != "" && !needy:
			problem.Kind, problem.NeedsYou, problem.Since = ProblemHeld, true, timeOrNil(waits.Since)
			missing, advice, _ := strings.Cut(waits.Missing, "; ")
			problem.Reason = what + " " + missing
			if !strings.HasPrefix(missing, "waits for ") {
				problem.Reason = fmt.Sprintf("%s waits at %s: %s", what, others, missing)
			}
			if problem.Advice = advice; !strings.HasPrefix(advice, "it goes on ") {
				problem.Advice = "it goes on when that is gone; " + cmp.Or(advice, "see what holds it")
			}
		case hold.Preflight == journal.HoldNextAttempt:
			problem.Kind, problem.NeedsYou, problem.Since = ProblemHeld, needy, timeOrNil(action.HeldSince[step])
			problem.Reason = fmt.Sprintf("%s keeps failing at %s: %s", what, step, hold.Reason)
			problem.Advice = "EKCO keeps retrying; after repairing the cause, to retry at once, run: ekco retry " + action.ID
		case len(action.Holds) > 0:
			problem.Kind, problem.NeedsYou, problem.Since = ProblemHeld, needy, timeOrNil(action.HeldSince[step])
			problem.Reason = fmt.Sprintf("%s waits, because %s", what, words.Held(hold.Preflight, hold.Reason))
			problem.Advice = "it continues automatically when that is gone"
			if needy {
				problem.Advice = fmt.Sprintf("it has waited for more than %s: do what the reason says, and it continues automatically", words.Span(time.Duration(hold.NeedsPersonAfter)))
			}
		default:
			continue
		}
		problems = append(problems, problem)
	}
	return problems
}

// NextTryHint returns a text that says when EKCO retries a stalled action automatically, or "".
func NextTryHint(action journal.ActionRecord) string {
	if action.Stalled == nil || action.Steps[action.Stalled.Step].NextTry.IsZero() {
		return ""
	}
	return "; EKCO retries it at " + words.Stamp(action.Steps[action.Stalled.Step].NextTry) + " or later"
}

// othersGrace is how long a step may wait for another program or a person before it needs a person.
const othersGrace = 30 * time.Second

// heldByOthers returns the step that has waited for others for the longest time, if it has waited longer than
// othersGrace.
func heldByOthers(now time.Time, steps map[string]actions.Progress) (step string, waits actions.Progress) {
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		held := steps[id]
		if held.NeedsOthers && now.Sub(held.Since) >= othersGrace && (step == "" || held.Since.Before(waits.Since)) {
			step, waits = id, held
		}
	}
	return step, waits
}

// attemptGrace is how long the attempts of a step may fail before a person is needed. Temporary causes end in less
// time.
const attemptGrace = 5 * time.Minute

// PersonAfter returns how long a hold may last before a person is needed; 0 means forever.
func PersonAfter(hold journal.ActionHeld) time.Duration {
	if hold.Preflight == journal.HoldNextAttempt {
		return attemptGrace
	}
	return time.Duration(hold.NeedsPersonAfter)
}

// gravestHold returns a hold of the action with its step. It prefers a hold that needs a person.
func gravestHold(now time.Time, action journal.ActionRecord) (step string, hold journal.ActionHeld, needy bool) {
	for _, id := range slices.Sorted(maps.Keys(action.Holds)) {
		held := action.Holds[id]
		if grace := PersonAfter(held); grace > 0 && now.Sub(action.HeldSince[id]) >= grace {
			return id, held, true
		}
		if hold == (journal.ActionHeld{}) {
			step, hold = id, held
		}
	}
	return step, hold, false
}

// nodeProblems returns a problem for each lost node. A node that EKCO will handle automatically needs no person yet. Of
// the open actions, only a purge handles the loss.
func nodeProblems(status *Status) (problems []Problem) {
	if !status.Operator.Running {
		return nil // the nodes may be ready again
	}
	automatic := map[string]bool{}
	for _, action := range status.Actions {
		if action.Kind == journal.ActionPurgeNode {
			automatic[action.Subject.UID] = true
		}
	}
	// Until EKCO has settled, it is unknown what EKCO will do about each node.
	settling := slices.ContainsFunc(status.Next, func(u fsm.Upcoming) bool { return u.Rule == fsm.RuleSettling })
	for _, next := range status.Next {
		if !next.Never && !next.At.IsZero() && next.Rule == "" {
			automatic[next.Subject.UID] = true
		}
	}
	for _, node := range status.Nodes {
		lost := !node.UnreachableSince.IsZero() && node.State != fsmnode.Purged && node.State != fsmnode.Gone
		if !lost && !node.Flapping || node.State == fsmnode.Purging { // the purge has its own problem
			continue
		}
		problem := Problem{
			Kind: ProblemNodeLost, NeedsYou: !automatic[node.UID] && !settling, Thing: "node/" + node.Name, Since: timeOrNil(node.UnreachableSince),
			Reason: fmt.Sprintf("node %s is lost since %s", node.Name, words.Stamp(node.UnreachableSince)),
			Advice: adviceOfLost(status, node), Command: "ekco explain node/" + node.Name,
		}
		if node.Flapping {
			problem.Since, problem.Reason = timeOrNil(node.Since), fmt.Sprintf("node %s is flapping, so EKCO does not act on it", node.Name)
			problem.Advice = "check its network and its kubelet; EKCO continues when it is stable"
		}
		problems = append(problems, problem)
	}
	return problems
}

// thingProblems returns a problem for each thing that needs a person.
func thingProblems(status *Status) (problems []Problem) {
	for _, thing := range status.Things {
		if thing.NeedsPerson != "" {
			name := thing.Machine + "/" + thing.Name
			problems = append(problems, Problem{
				Kind: ProblemNeedsPerson, NeedsYou: true, Thing: name, Since: timeOrNil(thing.Since),
				Reason: fmt.Sprintf("%s is %s: %s", name, thing.State, thing.NeedsPerson), Advice: thing.Advice, Command: "ekco explain " + name,
			})
		}
	}
	return problems
}

// adviceOfLost returns advice about a lost node. If many nodes are lost at once, the network is the likely cause, and
// purging them one after the other would destroy the cluster.
func adviceOfLost(status *Status, node NodeStatus) string {
	purge := "Gone for ever: ekco purge-node " + node.Name + " --dry-run"
	brakes := func(rule string) bool { return rule == fsmnode.RuleStormBrake }
	if isHalfLost(status.Nodes) || slices.ContainsFunc(status.Refusals, func(r fsm.Refusal) bool { return brakes(r.Rule) }) ||
		slices.ContainsFunc(status.Next, func(u fsm.Upcoming) bool { return brakes(u.Rule) }) {
		return "many nodes are lost at once: check the network first. " + purge
	}
	address := node.Name
	if _, err := netip.ParseAddr(node.InternalIP); err == nil { // a person types the address, and a kubelet can report any text
		address = node.InternalIP
	}
	return fmt.Sprintf("is it powered on? does ping %s answer? then on the node: systemctl status kubelet. %s", address, purge)
}

// isHalfLost reports whether at least two nodes and half of all nodes are lost. Rules do not report such a loss if EKCO
// would not act on these nodes anyway.
func isHalfLost(nodes []NodeStatus) bool {
	lost, all := 0, 0
	for _, node := range nodes {
		if node.State == fsmnode.Purged || node.State == fsmnode.Gone {
			continue
		}
		all++
		if !node.UnreachableSince.IsZero() || node.Flapping {
			lost++
		}
	}
	return lost > 1 && 2*lost >= all
}

// refusalProblems returns a problem for each change that a rule blocks.
func refusalProblems(status *Status, verb func(journal.ActionKind) string) (problems []Problem) {
	for _, refusal := range status.Refusals {
		problem := Problem{
			Kind: ProblemBlocked, NeedsYou: refusal.NeedsPerson, Thing: thingName(refusal.Subject), Since: timeOrNil(refusal.Since),
			Reason: fmt.Sprintf("%s is blocked by %s: %s", actionText(verb(refusal.Kind), refusal.Subject), refusal.Rule, refusal.Reason),
			Advice: "EKCO continues automatically when that is gone", Command: "ekco status",
		}
		if problem.Thing != "" {
			problem.Command = "ekco explain " + problem.Thing
		}
		if refusal.Rule == fsm.RulePaused {
			problem.Command = resumeCommand(status, problem.Thing)
		}
		problems = append(problems, problem)
	}
	return problems
}

// resumeCommand returns the command that ends the pause of the thing or, if it has none, the pause of everything.
func resumeCommand(status *Status, thing string) string {
	for key := range status.Pauses {
		if key != "" && pausedThing(key) == thing {
			return "ekco resume " + key
		}
	}
	return "ekco resume"
}

func defectProblems(status *Status) (problems []Problem) {
	for _, text := range status.Defects {
		problems = append(problems, Problem{
			Kind: ProblemDefect, Reason: text, Advice: "it is a defect of EKCO or of its journal; report it with the file that the command writes",
			Command: "ekco journal export FILE",
		})
	}
	return problems
}

// actionText returns a text for an action, such as "purge of worker-2" or "raise the copies of replicapool".
func actionText(verb string, subject journal.Subject) string {
	switch {
	case subject.Name == "":
		return verb
	case strings.Contains(verb, " "):
		return verb + " " + subject.Name
	}
	return verb + " of " + subject.Name
}

// thingName returns the argument for "ekco explain", or "" for the cluster.
func thingName(subject journal.Subject) string {
	if subject == journal.ClusterSubject {
		return ""
	}
	return strings.ToLower(subject.Kind) + "/" + subject.Name
}
