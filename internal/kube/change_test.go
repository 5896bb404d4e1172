package kube

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// oneObject answers each read with the next content.
type oneObject struct {
	Objects
	reads []string
}

func (o *oneObject) ReadObject(context.Context, Ref) (json.RawMessage, error) {
	now := o.reads[0]
	o.reads = o.reads[1:]
	return json.RawMessage(now), nil
}

const (
	former  = `{"metadata":{"uid":"u"},"data":{"a":"former"}}`
	wanted  = `{"metadata":{"uid":"u"},"data":{"a":"wanted"}}`
	another = `{"metadata":{"uid":"u"},"data":{"a":"another"}}`
)

func TestChangeIsMadeOnlyInTheObjectThatIsMeant(t *testing.T) {
	for name, test := range map[string]struct {
		reads, answers []string
		writes         int
		err            error
		failed         bool
	}{
		"made":                   {reads: []string{former}, answers: []string{wanted}, writes: 1},
		"made before":            {reads: []string{wanted}},
		"replaced":               {reads: []string{`{"metadata":{"uid":"v"}}`}, err: ErrOtherUID, failed: true},
		"moved":                  {reads: []string{another, another, another, another, another}, err: ErrConflict, failed: true},
		"a faster client":        {reads: []string{former, former}, answers: []string{"", wanted}, writes: 2},
		"made by another client": {reads: []string{former, wanted}, answers: []string{""}, writes: 1},
		"changed by a webhook":   {reads: []string{former}, answers: []string{former}, writes: 1, failed: true},
	} {
		writes := 0
		change := Change[corev1.ConfigMap, string]{
			UID:   "u",
			Facts: func(read *corev1.ConfigMap) (string, string, error) { return read.Data["a"], string(read.UID), nil },
			Lacks: func(now string) string {
				if now == "wanted" {
					return ""
				}
				return "it is " + now
			},
			Moved: func(now string) string {
				if now == "another" {
					return now
				}
				return ""
			},
			Write: func(json.RawMessage, *corev1.ConfigMap) (json.RawMessage, error) {
				answer := test.answers[writes]
				if writes++; answer == "" {
					return nil, ErrConflict
				}
				return json.RawMessage(answer), nil
			},
		}
		facts, err := change.Make(t.Context(), &oneObject{reads: test.reads})
		if writes != test.writes || (err != nil) != test.failed || !errors.Is(err, test.err) && test.err != nil || err == nil && facts != "wanted" {
			t.Errorf("%s: %v: %d writes, it is %q", name, err, writes, facts)
		}
	}
}
