package certificates

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates/primaries"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// shown is what the API server shows of any component, and why it does not.
type shown struct {
	Servers
	is  primaries.Component
	err error
}

func (s shown) Component(context.Context, string, string) (primaries.Component, error) {
	return s.is, s.err
}

func TestAComponentIsProvedByItsManifestItsStartAndThatItIsReady(t *testing.T) {
	made := time.Date(2026, 11, 24, 12, 0, 0, 500, time.UTC)
	fine := primaries.Component{Hash: "abc", Ready: true, Started: made.Truncate(time.Second)}
	for want, test := range map[string]struct {
		change func(*primaries.Component)
		err    error
	}{
		"":                                     {change: func(*primaries.Component) {}},
		"has no pod in the API":                {change: func(*primaries.Component) {}, err: kube.ErrNotFound},
		"another manifest":                     {change: func(c *primaries.Component) { c.Hash = "another" }},
		"before its certificates were created": {change: func(c *primaries.Component) { c.Started = made.Add(-time.Minute) }},
		"is not ready":                         {change: func(c *primaries.Component) { c.Ready = false }},
	} {
		is := fine
		test.change(&is)
		got, err := Primaries{Servers: shown{is: is, err: test.err}}.notRestartedReason(t.Context(), journal.ControlPlaneComponent{Name: "kube-scheduler", Hash: "abc", Since: made}, "p1")
		if err != nil || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	unanswered := Primaries{Servers: shown{err: kube.ErrUnavailable}}
	if _, err := unanswered.notRestartedReason(t.Context(), journal.ControlPlaneComponent{}, "p1"); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
