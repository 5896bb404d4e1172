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

// PolledOne is what [PollOne] observes: one object by name, of the Kubernetes API by default. Its events are
// thing.observed, with V as JSON in the facts, and thing.gone.
type PolledOne[V any] struct {
	// Machine is the thing's machine, Subject the thing without its UID.
	Machine string
	Subject journal.Subject
	// Get reads the object, reduced to what decisions need. UID returns the object's UID.
	Get func(context.Context) (V, error)
	UID func(V) string
	// Known has the things that exist according to the journal, by the names of subjects.
	Known map[string]V
	// Off, unless empty, is the setting that switches the source off. Then the object is not read, and a known thing
	// is recorded as gone for that reason.
	Off string
	// Interval is how often to read it; default is the observers' PollInterval.
	Interval time.Duration
	// Timeout is how long an answer may take; default 10s.
	Timeout time.Duration
	// Apart is the shortest time between two reads because of a Look.
	Apart time.Duration
	// Allowance limits how often the object is recorded.
	Allowance Allowance
	// Beyond: it asks something else than the Kubernetes API, so no answer is not a sign of an outage.
	Beyond bool
}

// PollOne returns a source of one object that cannot be watched. If it is not found, it no longer exists; without an
// object, the source silently keeps polling.
func PollOne[V any](what PolledOne[V]) Source {
	_, exists := what.Known[what.Subject.Name]
	polled := Polled[V]{
		Noun: what.noun(), Name: what.Subject.Kind + " " + what.Subject.Name, Interval: what.Interval, Timeout: what.Timeout, Apart: what.Apart, OfAPI: !what.Beyond,
		Ask: func(ctx context.Context) (map[string]V, error) {
			v, err := what.Get(ctx)
			switch gone := errors.Is(kube.Sentinel(err), kube.ErrNotFound); {
			case gone && exists:
				exists = ctx.Err() != nil // if the caller has stopped listening, it is reported the next time
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

// PollEach is [PollOne] for each of the subjects, which read reads.
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
