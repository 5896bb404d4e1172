package csr

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for kubelets' requests.
var Words = words.Component{
	Name:        Name,
	APIVersions: map[string]string{Kind: "certificates.k8s.io/v1"},
	Actions:     []words.Action{{Kind: Approve, Verb: "approve", Noun: "kubelet's certificate request"}},
	Rows: []words.Row{
		{
			Type: journal.TypeThingObserved, About: Kind, Tone: words.Faint, Wakes: true,
			Sentence: words.Of(factsSentence), Kubernetes: words.Of(refusalNote),
		},
		{
			Type: journal.TypeThingTransitioned, About: Kind,
			Sentence: words.Of(words.Transitioned),
			Log: words.Of(func(e journal.Event, p *journal.ThingTransitioned) words.Line {
				if p.To == Refused {
					return words.Warn("a kubelet's certificate request is not approved", "request", e.Subject.Name, "reason", p.Reason)
				}
				return words.Info("a kubelet's certificate request is "+string(p.To), "request", e.Subject.Name, "before", p.From, "reason", p.Reason)
			}),
		},
		{Type: journal.TypeThingGone, About: Kind, Tone: words.Faint, Sentence: words.Of(func(e journal.Event, p *journal.ThingGone) string {
			return fmt.Sprintf("%s is no longer pending: %s", words.Object(e.Subject), p.Reason)
		})},
	},
}

// readFacts decodes facts and returns the verdict on them.
func readFacts(p *journal.ThingObserved) (facts journal.CSRFacts, verdict Verdict, ok bool) {
	if err := json.Unmarshal(p.Facts, &facts); err != nil {
		return facts, verdict, false
	}
	return facts, verdictOf(facts), true
}

func factsSentence(e journal.Event, p *journal.ThingObserved) string {
	facts, verdict, ok := readFacts(p)
	if !ok {
		return ""
	}
	text := words.Object(e.Subject)
	if facts.AtLeast == 0 {
		text += fmt.Sprintf(" by %s asks for %s", facts.Asked.Requester, asksFor(facts.Asked))
	}
	if facts.Untold > 0 {
		text += fmt.Sprintf(", after %s that were not recorded", words.Count(facts.Untold, "change"))
	}
	switch verdict.Answer {
	case Unfit:
		return text + "; EKCO does not approve it: " + verdict.Reason
	case Waits:
		return text + "; it has to wait: " + verdict.Reason
	}
	return text + "; all its checks pass"
}

// maxNames limits how many requested names a sentence has.
const maxNames = 8

func asksFor(asked journal.CSR) string {
	names := asked.Names()
	switch {
	case len(names) == 0:
		return "no name"
	case len(names) > maxNames:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}

// refusalNote returns a Kubernetes Event about the Node for a refused request, so that "kubectl describe node" shows
// it. As in a kubelet's Events, the UID is the Node's name.
func refusalNote(e journal.Event, p *journal.ThingObserved) words.Note {
	_, verdict, ok := readFacts(p)
	if !ok || verdict.Answer != Unfit || e.Subject.Node == "" {
		return words.Note{}
	}
	return words.Note{
		Reason: "KubeletCertificateNotApproved", Warning: true,
		Message: fmt.Sprintf("%s: %s", e.Subject.Name, verdict.Reason),
		About:   journal.Subject{Kind: "Node", Name: e.Subject.Node, UID: e.Subject.Node},
	}
}
