package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// Sentence says in one line what the event says, for people. It is safe to
// print. An event of a type or version that this EKCO does not know is quoted.
func Sentence(e journal.Event) string {
	payload, err := e.Decode()
	if err != nil {
		return Clean(unreadable(e, err))
	}
	for _, say := range []func(journal.Event, journal.Payload) string{sayJournal, sayClock, sayNode, sayPolicy, sayAction, sayStep} {
		if text := say(e, payload); text != "" {
			return Clean(text)
		}
	}
	return Clean(unreadable(e, errors.New("nothing is known to say about it")))
}

func unreadable(e journal.Event, err error) string {
	return fmt.Sprintf("%s of version %d about %s: %s (%v)", e.Type, e.Version, object(e.Subject), e.Payload, err)
}

func sayJournal(e journal.Event, payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.JournalCreated:
		return fmt.Sprintf("journal %s of format %d was created", p.JournalID, p.Format)
	case *journal.JournalSalvaged:
		return fmt.Sprintf("the journal was damaged (%s): %s up to #%d recovered, at least %d lost; the damaged file is %s; safe mode begins",
			p.Problem, count(p.Recovered, "event"), p.LastSeq, p.LostAtLeast, p.DamagedFile)
	case *journal.JournalOutdated:
		return fmt.Sprintf("the journal lost its newest events: its mirror in the cluster knows of #%d%s, %s; safe mode begins",
			p.Mirrored.Seq, writtenAt(p.MirroredAt), keptOf(p))
	case *journal.JournalReplaced:
		return fmt.Sprintf("what was at the journal's path is not the journal of this cluster (%s); it was set aside as %s, and this journal begun", p.Problem, p.File)
	case *journal.JournalAccepted:
		return e.Actor + " accepted the journal" + because(p.Reason) + "; safe mode ends"
	case *journal.JournalExported:
		return fmt.Sprintf("%s from #%d to #%d moved to %s; %d of that range stay", count(p.Events, "event"), p.FirstSeq, p.LastSeq, p.File, p.Kept)
	case *journal.JournalImported:
		return fmt.Sprintf("%s from #%d to #%d imported from %s", count(p.Events, "event"), p.FirstSeq, p.LastSeq, p.File)
	case *journal.OperatorStarted:
		text := fmt.Sprintf("EKCO %s began to observe on %s (pid %d)", p.Version, p.Host, p.PID)
		if p.Command != "" {
			text += ", for the command " + p.Command + ", because no operator ran"
		}
		if p.DryRun {
			text += "; it only records what it would do"
		}
		return text + saySkew(p)
	case *journal.OperatorStopped:
		return "EKCO stopped" + because(p.Reason)
	case *journal.APILost:
		return "the Kubernetes API stopped answering" + because(p.Error)
	case *journal.APIRecovered:
		if p.LostAt.IsZero() {
			return "the Kubernetes API answers again"
		}
		return "the Kubernetes API answers again after " + Span(e.Time.Sub(p.LostAt))
	}
	return ""
}

func sayNode(e journal.Event, payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.NodeObserved:
		return fmt.Sprintf("%s (%s) %s", object(e.Subject), p.Role, observed(p))
	case *journal.NodeTraced:
		return fmt.Sprintf("%s asked for %s, which EKCO never saw; what is left of it: %s",
			e.Actor, object(e.Subject), strings.Join(slices.Concat(p.Found, p.Doubts), "; "))
	case *journal.NodeGone:
		return object(e.Subject) + " is gone" + because(p.Reason)
	case *journal.PodTerminating:
		asked := "should have ended by"
		if p.DeletionTimestamp.After(e.Time) {
			asked = "is asked to end by"
		}
		return fmt.Sprintf("%s on unreachable node %s %s %s", object(e.Subject), e.Subject.Node, asked, stamp(p.DeletionTimestamp))
	case *journal.PodGone:
		return fmt.Sprintf("%s on node %s is gone or no longer concerns EKCO", object(e.Subject), e.Subject.Node)
	case *journal.NodeTransitioned:
		return fmt.Sprintf("%s: %s → %s%s", object(e.Subject), p.From, p.To, because(p.Reason))
	case *journal.ThingObserved:
		return fmt.Sprintf("%s is now %s", object(e.Subject), p.Facts)
	case *journal.ThingGone:
		return object(e.Subject) + " is gone" + because(p.Reason)
	case *journal.ThingTransitioned:
		return fmt.Sprintf("%s: %s → %s%s", object(e.Subject), p.From, p.To, because(p.Reason))
	}
	return ""
}

// observed says what was seen of a node.
func observed(p *journal.NodeObserved) string {
	text := "is " + condition(p.NodeFacts)
	if p.Flapping {
		text = "comes and goes; recorded again when it stays, or stays away" + excluded(p.NodeFacts)
	}
	if p.Flaps > 0 {
		text += fmt.Sprintf(", after it was lost %d times", p.Flaps)
	}
	return text
}

// condition says what a node's facts mean.
func condition(f journal.NodeFacts) string {
	text := "ready"
	if !f.Ready() {
		var words []string
		for _, taint := range f.Taints {
			if word := taintWord(taint.Key, f); !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		text = "not ready: " + strings.Join(words, ", ")
	}
	return text + excluded(f)
}

func excluded(f journal.NodeFacts) string {
	if f.Excluded {
		return "; excluded from EKCO's care by its label"
	}
	return ""
}

// taintWord says what the taints of a key mean. Kubernetes sets those of one
// loss one after the other, so their effects tell the observations apart.
func taintWord(key string, f journal.NodeFacts) string {
	var effects []string
	for _, taint := range f.Taints {
		if taint.Key == key {
			effects = append(effects, taint.Effect)
		}
	}
	word := strings.TrimPrefix(key, "node.kubernetes.io/")
	switch key {
	case journal.TaintUnschedulable:
		return "cordoned"
	case journal.TaintUnreachable:
		if since, _ := f.Unreachable(); !since.IsZero() {
			word = "unreachable since " + stamp(since)
		}
	}
	slices.Sort(effects)
	return word + " (" + strings.Join(slices.Compact(effects), ", ") + ")"
}

func sayPolicy(e journal.Event, payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.PolicyRefused:
		return fmt.Sprintf("EKCO may not %s %s: %s%s", verb(p.Kind), target(e.Subject), p.Rule, because(p.Reason))
	case *journal.PolicyLifted:
		return fmt.Sprintf("%s no longer keeps EKCO from: %s %s", p.Rule, verb(p.Kind), target(e.Subject))
	case *journal.PauseSet:
		until := ""
		if !p.Until.IsZero() {
			until = " until " + stamp(p.Until)
		}
		return fmt.Sprintf("%s paused %s%s%s", e.Actor, object(e.Subject), until, because(p.Reason))
	case *journal.PauseCleared:
		return fmt.Sprintf("%s ended the pause of %s%s", e.Actor, object(e.Subject), because(p.Reason))
	case *journal.ActionRefused:
		return fmt.Sprintf("%s asked to %s %s and was refused: %s%s", e.Actor, verb(p.Kind), object(e.Subject), p.Rule, because(p.Reason))
	}
	return ""
}

// verb returns what an action does: "clear" for clear-node.
func verb(kind journal.ActionKind) string {
	return strings.TrimSuffix(string(kind), "-node")
}
