package csr

import (
	"encoding/json"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Actor is the actor of events about requests.
const Actor = "observer/csr"

// Machine is the name of the machine for requests. Kind is the kind of their subjects.
const (
	Machine = "csr"
	Kind    = "CertificateSigningRequest"
)

// Known is a request that has no decision according to the journal.
type Known struct {
	Subject journal.Subject
	Facts   journal.CSRFacts
}

// recordedRequest has the recorded data of a request.
type recordedRequest struct {
	subject   journal.Subject
	requester string
	// facts has the facts as JSON, for comparisons.
	facts string
	// unrecorded counts the changes of the facts since they were last recorded.
	unrecorded int
	// over is the reason why EKCO no longer judges the request, or "".
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
			panic(err) // recordedOf has encoded it
		}
		whole.Untold = t.unrecorded
		facts = encoded(whole)
	}
	return journal.ThingObserved{Machine: Machine, Facts: json.RawMessage(facts)}
}

func subjectOf(request csr.Request) journal.Subject {
	return journal.Subject{Kind: Kind, Name: request.Name, UID: request.UID, Node: journal.KubeletOf(request.Asked.Requester)}
}

// crowdSubject returns the subject for the other requests of one requester. No request has such a name.
func crowdSubject(requester string) journal.Subject {
	return journal.Subject{Kind: Kind, Name: "further ones of " + requester, Node: journal.KubeletOf(requester)}
}

// keyOf returns a key for a subject: its UID if it has one.
func keyOf(subject journal.Subject) string {
	if subject.UID != "" {
		return subject.UID
	}
	return subject.Name
}

// recordsFor implements [observers.RecordFunc].
func recordsFor(d observers.Difference[recordedRequest]) observers.Records[recordedRequest] {
	var records observers.Records[recordedRequest]
	reason := "deleted"
	if d.Now != nil && d.Now.over != "" {
		reason = d.Now.over
	}
	if d.Now == nil || d.Now.over != "" {
		for _, was := range d.Was {
			records.Drafts = append(records.Drafts, journal.Draft{
				Type: journal.TypeThingGone, Actor: Actor, Subject: was.subject,
				Payload: journal.ThingGone{Machine: Machine, Reason: reason},
			})
		}
		return records
	}
	records.InJournal = []recordedRequest{*d.Now}
	if len(d.Was) > 0 && d.Was[0].facts == d.Now.facts {
		return records
	}
	records.Drafts = []journal.Draft{{
		Type: journal.TypeThingObserved, Actor: Actor, Subject: d.Now.subject,
		Payload: d.Now.payload(),
	}}
	return records
}
