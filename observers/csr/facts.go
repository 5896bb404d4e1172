package csr

import (
	"encoding/json"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Actor is recorded with facts of requests.
const Actor = "observer/csr"

// Machine is the machine of requests, Kind their kind as subjects.
const (
	Machine = "csr"
	Kind    = "CertificateSigningRequest"
)

// Known is a request without a decision according to the journal.
type Known struct {
	Subject journal.Subject
	Facts   journal.CSRFacts
}

// recordedRequest is what is recorded of a request.
type recordedRequest struct {
	subject   journal.Subject
	requester string
	// facts are the JSON of the facts, for comparisons.
	facts string
	// unrecorded is how often they have changed since they were last recorded.
	unrecorded int
	// over is why it is no longer judged, "" while it is.
	over string
}

func recordedOf(subject journal.Subject, facts journal.CSRFacts) recordedRequest {
	facts.Untold = 0
	return recordedRequest{subject: subject, requester: facts.Asked.Requester, facts: encoded(facts)}
}

func encoded(facts journal.CSRFacts) string {
	text, err := json.Marshal(facts)
	if err != nil {
		panic(err) // a value of this type can always be encoded
	}
	return string(text)
}

// payload is the event's payload.
func (t recordedRequest) payload() journal.ThingObserved {
	facts := t.facts
	if t.unrecorded > 0 {
		var whole journal.CSRFacts
		if err := json.Unmarshal([]byte(facts), &whole); err != nil {
			panic(err) // it was encoded by recordedOf
		}
		whole.Untold = t.unrecorded
		facts = encoded(whole)
	}
	return journal.ThingObserved{Machine: Machine, Facts: json.RawMessage(facts)}
}

func subjectOf(request csr.Request) journal.Subject {
	return journal.Subject{Kind: Kind, Name: request.Name, UID: request.UID, Node: journal.KubeletOf(request.Asked.Requester)}
}

// crowdSubject is the subject for the further requests of one requester. No request has such a name.
func crowdSubject(requester string) journal.Subject {
	return journal.Subject{Kind: Kind, Name: "further ones of " + requester, Node: journal.KubeletOf(requester)}
}

// keyOf identifies a subject: by its UID if it has one.
func keyOf(subject journal.Subject) string {
	if subject.UID != "" {
		return subject.UID
	}
	return subject.Name
}

// tell implements [observers.Tell].
func tell(d observers.Difference[recordedRequest]) observers.Telling[recordedRequest] {
	var telling observers.Telling[recordedRequest]
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
	telling.Told = []recordedRequest{*d.Now}
	if len(d.Was) > 0 && d.Was[0].facts == d.Now.facts {
		return telling
	}
	telling.Drafts = []journal.Draft{{
		Type: journal.TypeThingObserved, Actor: Actor, Subject: d.Now.subject,
		Payload: d.Now.payload(),
	}}
	return telling
}
