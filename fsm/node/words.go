package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for nodes, their pods, and the actions on them.
var Words = words.Component{
	Name:        "node",
	APIVersions: map[string]string{"Node": "v1", "Pod": "v1"},
	Actions: []words.Action{
		{Kind: journal.ActionClearNode, Verb: "clear", Noun: "node", Asked: askedToClear},
		{Kind: journal.ActionPurgeNode, Verb: "purge", Noun: "node", Deferred: "Ceph", Asked: askedToPurge},
	},
	Rows: []words.Row{
		{Type: journal.TypeNodeObserved, Tone: words.Faint, Wakes: true, Sentence: words.Of(func(e journal.Event, p *journal.NodeObserved) string {
			return fmt.Sprintf("%s (%s) %s", words.Object(e.Subject), p.Role, observedText(p))
		})},
		{Type: journal.TypeNodeGone, Wakes: true, Sentence: words.Of(func(e journal.Event, p *journal.NodeGone) string {
			return words.Object(e.Subject) + " is gone" + words.Because(p.Reason)
		})},
		{
			Type: journal.TypeNodeTraced, Tone: words.Doubtful,
			Sentence: words.Of(func(e journal.Event, p *journal.NodeTraced) string {
				return fmt.Sprintf("%s asked to purge %s, which EKCO never saw; what is left of it: %s",
					e.Actor, words.Object(e.Subject), strings.Join(slices.Concat(p.Found, p.Doubts), "; "))
			}),
			Log: words.Of(func(e journal.Event, p *journal.NodeTraced) words.Line {
				return words.Warn("purge requested for a node that EKCO never saw", "by", e.Actor, "found", p.Found, "doubts", p.Doubts)
			}),
		},
		{
			Type: journal.TypeNodeTransitioned,
			Sentence: words.Of(func(e journal.Event, p *journal.NodeTransitioned) string {
				return fmt.Sprintf("%s: %s → %s%s", words.Object(e.Subject), p.From, p.To, words.Because(p.Reason))
			}),
			Log:        words.Of(logTransition),
			Kubernetes: words.Of(transitionNote),
		},
		{Type: journal.TypePodTerminating, Tone: words.Faint, Sentence: words.Of(terminatingText)},
		{Type: journal.TypePodGone, Tone: words.Faint, Sentence: words.Of(func(e journal.Event, _ *journal.PodGone) string {
			return fmt.Sprintf("EKCO no longer tracks %s on node %s: the pod is gone or the node is back", words.Object(e.Subject), e.Subject.Node)
		})},
	},
}

func askedToClear(p *journal.ActionRequested) []string {
	if pods := len(journal.ClearInputOf(*p).Pods); pods > 0 {
		return []string{"for " + words.Count(pods, "pod")}
	}
	return nil
}

func askedToPurge(p *journal.ActionRequested) []string {
	if journal.PurgeInputOf(*p).Live {
		return []string{"while the node answers"}
	}
	return nil
}

func logTransition(_ journal.Event, p *journal.NodeTransitioned) words.Line {
	line := words.Warn("node is "+string(p.To), "before", p.From, "reason", p.Reason)
	if p.To == Healthy || p.To == Cleared || p.To == Purged {
		line = words.Info(line.Message, line.Attrs...)
	}
	return line
}

func transitionNote(_ journal.Event, p *journal.NodeTransitioned) words.Note {
	return words.Note{
		Reason: "Node" + string(p.To), Warning: p.To != Healthy,
		Message: fmt.Sprintf("%s -> %s: %s", p.From, p.To, p.Reason),
	}
}

func terminatingText(e journal.Event, p *journal.PodTerminating) string {
	deadline := "deadline"
	if !p.DeletionTimestamp.After(e.Time) {
		deadline = "past its deadline"
	}
	return fmt.Sprintf("%s on unreachable node %s is terminating (%s %s)", words.Object(e.Subject), e.Subject.Node, deadline, words.Stamp(p.DeletionTimestamp))
}

// observedText returns the part of a sentence that describes new facts about a node.
func observedText(p *journal.NodeObserved) string {
	text := "is " + conditionText(p.NodeFacts)
	if p.Flapping {
		text = "is flapping; EKCO records it again when it is stable" + exclusionText(p.NodeFacts)
	}
	if p.Flaps > 0 {
		text += fmt.Sprintf(", after it was lost %d times", p.Flaps)
	}
	return text
}

func conditionText(f journal.NodeFacts) string {
	text := "ready"
	switch {
	case f.Ready():
	case !slices.ContainsFunc(f.Taints, func(t journal.Taint) bool { return t.Key != journal.TaintUnschedulable }):
		text = "cordoned: no new pods start on it" // Kubernetes still reports Ready
	default:
		var meanings []string
		for _, taint := range f.Taints {
			if meaning := taintMeaning(taint.Key, f); !slices.Contains(meanings, meaning) {
				meanings = append(meanings, meaning)
			}
		}
		text = "not ready: " + strings.Join(meanings, ", ")
	}
	return text + exclusionText(f)
}

func exclusionText(f journal.NodeFacts) string {
	if f.Excluded {
		return "; excluded from EKCO's actions by its label"
	}
	return ""
}

// taintMeaning returns a text for the taints with a key. It names their effects, because Kubernetes adds several taints
// one after the other, and the texts of these observations must differ.
func taintMeaning(key string, f journal.NodeFacts) string {
	var effects []string
	for _, taint := range f.Taints {
		if taint.Key == key {
			effects = append(effects, taint.Effect)
		}
	}
	meaning := strings.TrimPrefix(key, "node.kubernetes.io/")
	switch key {
	case journal.TaintUnschedulable:
		return "cordoned"
	case journal.TaintUnreachable:
		if since, _ := f.Unreachable(); !since.IsZero() {
			meaning = "unreachable since " + words.Stamp(since)
		}
	}
	slices.Sort(effects)
	return meaning + " (" + strings.Join(slices.Compact(effects), ", ") + ")"
}
