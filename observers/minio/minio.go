// Package minio is the source of facts about MinIO. EKCO may watch only the pods. So it reads the other objects by
// name: at intervals, when a pod changes, and at once after EKCO itself has changed something.
package minio

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Machine is the name of the machine for these facts.
const Machine = "minio"

// Options of [New].
type Options struct {
	API       minio.API
	Namespace string
	// Pods is the source of the replicas' pods.
	Pods kube.Source
	// Known has the facts in the journal, by name.
	Known map[string]journal.MinioFacts
}

// New returns the source of the facts, and a source that triggers it when a pod changes.
func New(options Options) []observers.Source {
	name := journal.MinioSubject(options.Namespace, "").Name
	_, exists := options.Known[name]
	tells := observers.Poll(observers.Polled[journal.MinioFacts]{
		Name: journal.MinioKind + " " + name, Noun: noun(options.Known, ""), OfAPI: true,
		Ask: func(ctx context.Context) (map[string]journal.MinioFacts, error) {
			facts, err := options.API.Observe(ctx)
			switch gone := errors.Is(kube.Sentinel(err), kube.ErrNotFound); {
			case gone && exists:
				exists = ctx.Err() != nil // if the caller no longer waits, report it the next time
				return nil, nil
			case gone:
				return nil, observers.ErrAbsent
			case err != nil:
				return nil, err
			}
			exists = true
			return map[string]journal.MinioFacts{name: facts}, nil
		},
	})
	return []observers.Source{tells, observers.Trigger(observers.Triggering{
		Name: "MinIO pods", From: options.Pods, Example: &corev1.Pod{}, Changed: tells.Look,
	})}
}

// Off returns a source that reads nothing. It records known subjects as gone, with why as the reason.
func Off(known map[string]journal.MinioFacts, why string) observers.Source {
	return observers.Poll(observers.Polled[journal.MinioFacts]{
		Name: journal.MinioKind, Noun: noun(known, why),
		Ask: func(context.Context) (map[string]journal.MinioFacts, error) { return nil, nil },
	})
}

// noun returns the definition of the records. why is the reason to record for subjects that are gone, or "" for the
// observed reason.
func noun(known map[string]journal.MinioFacts, why string) observers.Noun[journal.MinioFacts] {
	return observers.Noun[journal.MinioFacts]{
		Observed: func(name string, facts journal.MinioFacts) journal.Draft {
			encoded, err := json.Marshal(facts)
			if err != nil {
				panic(err) // a value of this type can always be encoded
			}
			return draft(journal.TypeThingObserved, name, facts, journal.ThingObserved{Machine: Machine, Facts: encoded})
		},
		Gone: func(name string, facts journal.MinioFacts, reason string) journal.Draft {
			if why != "" {
				reason = why
			}
			return draft(journal.TypeThingGone, name, facts, journal.ThingGone{Machine: Machine, Reason: reason})
		},
		Equal: func(a, b journal.MinioFacts) bool { return reflect.DeepEqual(a, b) },
		UID:   func(facts journal.MinioFacts) string { return facts.UID },
		Known: maps.All(known),
	}
}

func draft(event journal.Type, name string, facts journal.MinioFacts, payload journal.Payload) journal.Draft {
	subject := journal.Subject{Kind: journal.MinioKind, Name: name, UID: facts.UID}
	return journal.Draft{Type: event, Actor: "observer/" + Machine, Subject: subject, Payload: payload}
}
