package certificates

import (
	"encoding/json"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// rolloutTarget returns the same rollout target for all control planes, because they are renewed one after the
// other.
func rolloutTarget(*journal.ActionRequested) string {
	return "they expire within rotate_certs_ttl"
}

// Words has the entries of the message catalog for certificates and their actions.
var Words = words.Component{
	Name: Machine,
	Actions: []words.Action{
		{Kind: journal.ActionRenewCertificate, Verb: "renew", Noun: "certificates"},
		{Kind: journal.ActionRenewControlPlane, Verb: "renew", Noun: "certificates of a control plane", RolloutTarget: rolloutTarget},
		{Kind: journal.ActionLookAtCertificates, Verb: "look at", Noun: "certificates of a control plane"},
	},
	Rows: []words.Row{
		{
			Type: journal.TypeThingTransitioned, About: journal.KindCertificate,
			Sentence: words.Of(words.Transitioned),
			Log: words.Of(func(e journal.Event, p *journal.ThingTransitioned) words.Line {
				line := words.Info
				if p.To == Unreadable {
					line = words.Warn
				}
				return line(words.Object(e.Subject)+" is "+string(p.To), "before", p.From, "reason", p.Reason)
			}),
		},
		{
			Type: journal.TypeThingObserved, About: journal.KindCertificate, Tone: words.Faint, Wakes: true,
			Sentence: words.Of(factsSentence), Log: words.Of(warning), Kubernetes: words.Of(kubernetesEvent),
		},
		words.Gone(journal.KindCertificate),
	},
}

func factsOf(p *journal.ThingObserved) (facts journal.CertificateFacts, known bool) {
	err := json.Unmarshal(p.Facts, &facts)
	return facts, err == nil
}

func factsSentence(e journal.Event, p *journal.ThingObserved) string {
	facts, known := factsOf(p)
	if !known {
		return ""
	}
	var parts []string
	if len(facts.Certificates) > 0 {
		parts = append(parts, "the first of "+words.Count(len(facts.Certificates), "certificate")+" expires at "+fsm.Stamp(facts.Ends()))
	}
	for _, why := range []string{facts.Unreadable, facts.Unrenewed} {
		if why != "" {
			parts = append(parts, why)
		}
	}
	if facts.RecordedDue {
		parts = append(parts, "it is due")
	}
	if facts.On != nil && len(parts) == 0 {
		parts = append(parts, "they were not read yet")
	}
	if facts.On != nil && !facts.On.Ready {
		parts = append(parts, "the node is not ready")
	}
	return words.Object(e.Subject) + ": " + strings.Join(parts, "; ")
}

// expiryWarning returns the warning that a certificate expires soon, or "". For a certificate that EKCO renews, there
// is no warning at [journal.Within30Days], only at the later levels.
func expiryWarning(e journal.Event, facts journal.CertificateFacts) string {
	own := facts.Unreadable == "" && facts.Unrenewed == ""
	if facts.Within == "" || own && facts.Within == journal.Within30Days {
		return ""
	}
	ends := " expires within " + string(facts.Within) + ", at "
	if facts.Within == journal.Expired {
		ends = " expired at "
	}
	status := "EKCO has not renewed it yet; \"ekco certificates\" says what it waits for"
	switch {
	case facts.Unreadable != "":
		status = "EKCO cannot renew it: " + facts.Unreadable
	case facts.Unrenewed != "":
		status = "EKCO does not renew it: " + facts.Unrenewed
	}
	return words.Object(e.Subject) + ends + fsm.Stamp(facts.Ends()) + "; " + status
}

func warning(e journal.Event, p *journal.ThingObserved) words.Line {
	facts, known := factsOf(p)
	if text := expiryWarning(e, facts); known && text != "" {
		return words.Warn(text)
	}
	return words.Line{}
}

// kubernetesEvent returns a Kubernetes Event about the Secret or the Node of the certificate, so that "kubectl
// describe" shows it there. A CA in a file has no such object, so its Event is about the namespace of the control
// plane.
func kubernetesEvent(e journal.Event, p *journal.ThingObserved) words.Note {
	facts, known := factsOf(p)
	text := expiryWarning(e, facts)
	about, is := secretOf(facts)
	if !is {
		about = journal.Subject{Kind: "Namespace", Name: "kube-system"}
	}
	if node := e.Subject.Node; node != "" { // the name is also used as the UID, as in a kubelet's Events
		about = journal.Subject{Kind: "Node", Name: node, UID: node}
	}
	if !known || text == "" {
		return words.Note{}
	}
	reason := "CertificateExpires"
	if facts.Within == journal.Expired {
		reason = "CertificateExpired"
	}
	return words.Note{Reason: reason, Message: text, Warning: true, About: about, APIVersion: "v1"}
}

// secretOf returns the Secret with the certificate that expires first, and false if that certificate is not in a
// Secret.
func secretOf(facts journal.CertificateFacts) (secret journal.Subject, is bool) {
	for _, certificate := range facts.Certificates {
		name, in := strings.CutPrefix(certificate.At, "Secret ")
		if in && certificate.NotAfter.Equal(facts.Ends()) {
			name, _, _ = strings.Cut(name, " ")
			return journal.Subject{Kind: "Secret", Name: name}, true
		}
	}
	return journal.Subject{}, false
}
