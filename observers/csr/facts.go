package csr

import (
	"encoding/json"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Actor is under whom facts of requests are recorded.
const Actor = "observer/csr"

// Machine is what the machine of requests is called, Kind what they are as subjects.
const (
	Machine = "csr"
	Kind    = "CertificateSigningRequest"
)

// Known is a request that the journal says nobody has decided on.
type Known struct {
	Subject journal.Subject
	Facts   journal.CSRFacts
}

// told is what the journal is told of a request.
type told struct {
	subject   journal.Subject
	requester string
	// facts are in their JSON form, which is what they are compared by.
	facts string
	// untold is how often they were otherwise since it was told of them last.
	untold int
	// over is why it is no longer looked at, "" while it is.
	over string
}

func tellOf(subject journal.Subject, facts journal.CSRFacts) told {
	facts.Untold = 0
	return told{subject: subject, requester: facts.Asked.Requester, facts: encoded(facts)}
}

func encoded(facts journal.CSRFacts) string {
	text, err := json.Marshal(facts)
	if err != nil {
		panic(err) // no value of this type cannot be encoded
	}
	return string(text)
}

// payload is what the journal is told.
func (t told) payload() journal.ThingObserved {
	facts := t.facts
	if t.untold > 0 {
		var whole journal.CSRFacts
		if err := json.Unmarshal([]byte(facts), &whole); err != nil {
			panic(err) // it was encoded by tellOf
		}
		whole.Untold = t.untold
		facts = encoded(whole)
	}
	return journal.ThingObserved{Machine: Machine, Facts: json.RawMessage(facts)}
}

func subjectOf(request csr.Request) journal.Subject {
	return journal.Subject{Kind: Kind, Name: request.Name, UID: request.UID, Node: journal.KubeletOf(request.Asked.Requester)}
}

// crowdSubject is what stands for the further requests of one requester. No request has
// such a name.
func crowdSubject(requester string) journal.Subject {
	return journal.Subject{Kind: Kind, Name: "further ones of " + requester, Node: journal.KubeletOf(requester)}
}

// keyOf tells subjects apart: the UID where there is one.
func keyOf(subject journal.Subject) string {
	if subject.UID != "" {
		return subject.UID
	}
	return subject.Name
}

// tell implements [observers.Tell].
func tell(d observers.Difference[told]) observers.Telling[told] {
	var telling observers.Telling[told]
	reason := "deleted"
	if d.Now != nil && d.Now.over != "" {
		reason = d.Now.over
	}
	if d.Now == nil || d.Now.over != "" {
		for _, was := range d.Was {
			telling.Drafts = append(telling.Drafts, journal.Draft{
				Type: journal.TypeThingGone, Actor: Actor, Subject: was.subject,
				Payload: journal.ThingGone{Machine: Machine, Reason: reason},
			})
		}
		return telling
	}
	telling.Told = []told{*d.Now}
	if len(d.Was) > 0 && d.Was[0].facts == d.Now.facts {
		return telling
	}
	telling.Drafts = []journal.Draft{{
		Type: journal.TypeThingObserved, Actor: Actor, Subject: d.Now.subject,
		Payload: d.Now.payload(),
	}}
	return telling
}
