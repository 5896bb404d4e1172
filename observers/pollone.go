package observers

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// PolledOne configures [PollOne]. It is for one object by name, by default of the Kubernetes API. The source records
// the events thing.observed, with V as JSON in the facts, and thing.gone.
type PolledOne[V any] struct {
	// Machine is the name of the machine. Subject is the subject without its UID.
	Machine string
	Subject journal.Subject
	// Get reads the object, reduced to what decisions need. UID returns the UID of the object.
	Get func(context.Context) (V, error)
	UID func(V) string
	// Known has the objects that exist according to the journal, by the names of their subjects.
	Known map[string]V
	// Off is the name of the setting that switches the source off, or "". If it is set, the source does not read the
	// object, and records a known object as gone, with Off as the reason.
	Off string
	// Interval is the time between two reads. The default is the observers' PollInterval.
	Interval time.Duration
	// Timeout limits one read (default 10s).
	Timeout time.Duration
	// Apart is the shortest time between two reads that Look triggers.
	Apart time.Duration
	// Allowance limits how often the object is recorded.
	Allowance Allowance
	// NotFromAPI is true if Get does not call the Kubernetes API, so that a missing answer is no sign of an outage.
	NotFromAPI bool
}

// PollOne returns a source for one object that cannot be watched. An object that is not found counts as gone, or as
// [ErrAbsent] if it never existed.
func PollOne[V any](what PolledOne[V]) Source {
	_, exists := what.Known[what.Subject.Name]
	polled := Polled[V]{
		Noun: what.noun(), Name: what.Subject.Kind + " " + what.Subject.Name, Interval: what.Interval, Timeout: what.Timeout, Apart: what.Apart, OfAPI: !what.NotFromAPI,
		Ask: func(ctx context.Context) (map[string]V, error) {
			v, err := what.Get(ctx)
			switch gone := errors.Is(kube.Sentinel(err), kube.ErrNotFound); {
			case gone && exists:
				exists = ctx.Err() != nil // if the caller no longer waits, report it the next time
				return nil, nil
			case gone:
				return nil, ErrAbsent
			case err != nil:
				return nil, err
			}
			exists = true
			return map[string]V{what.Subject.Name: v}, nil
		},
	}
	if what.Off != "" {
		polled.OfAPI, polled.Ask = false, func(context.Context) (map[string]V, error) { return nil, nil }
	}
	return Poll(polled)
}

// PollEach returns a [PollOne] source for each subject. read reads the object of a subject.
func PollEach[V any](subjects []journal.Subject, read func(context.Context, journal.Subject) (V, error), what PolledOne[V]) []Source {
	sources := make([]Source, len(subjects))
	for i, subject := range subjects {
		what.Subject, what.Get = subject, func(ctx context.Context) (V, error) { return read(ctx, subject) }
		sources[i] = PollOne(what)
	}
	return sources
}

func (o PolledOne[V]) noun() Noun[V] {
	return Noun[V]{
		Observed: func(_ string, v V) journal.Draft {
			facts, err := json.Marshal(v)
			if err != nil {
				panic(err) // facts can always be encoded
			}
			return o.draft(journal.TypeThingObserved, v, journal.ThingObserved{Machine: o.Machine, Facts: facts})
		},
		Gone: func(_ string, v V, reason string) journal.Draft {
			if o.Off != "" {
				reason = o.Off
			}
			return o.draft(journal.TypeThingGone, v, journal.ThingGone{Machine: o.Machine, Reason: reason})
		},
		Equal:     func(a, b V) bool { return reflect.DeepEqual(a, b) },
		UID:       o.UID,
		Allowance: o.Allowance,
		Known: func(yield func(string, V) bool) {
			if v, known := o.Known[o.Subject.Name]; known {
				yield(o.Subject.Name, v)
			}
		},
	}
}

func (o PolledOne[V]) draft(event journal.Type, v V, payload journal.Payload) journal.Draft {
	subject := o.Subject
	subject.UID = o.UID(v)
	return journal.Draft{Type: event, Actor: "observer/" + o.Machine, Subject: subject, Payload: payload}
}
