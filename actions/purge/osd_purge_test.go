package purge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// refusing is a Ceph that refuses to purge an OSD.
type refusing struct {
	ceph.API
	err    error
	forced bool
}

func (r *refusing) Purge(_ context.Context, _ ceph.Ref, force bool) error {
	r.forced = r.forced || force
	return r.err
}

// TestNoRefusalIsOverruledWithoutARecord: here nothing can be recorded, and Ceph can recover.
func TestNoRefusalIsOverruledWithoutARecord(t *testing.T) {
	for name, test := range map[string]struct {
		refusal error
		manual  bool
		// gone and refused are set if that is the result; else it tried to record that it overrules the refusal.
		gone, refused bool
	}{
		"it is busy, and a person asks":           {ceph.ErrBusy, true, false, false},
		"Ceph does not know, and a person asks":   {ceph.ErrAgain, true, false, false},
		"it is busy":                              {ceph.ErrBusy, false, false, true},
		"Ceph does not know":                      {ceph.ErrAgain, false, false, true},
		"Ceph does not answer, and a person asks": {ceph.ErrUnavailable, true, false, true},
		"it is another one":                       {ceph.ErrOtherOSD, false, true, false},
	} {
		api, step := &refusing{API: mute{}, err: test.refusal}, actions.StepContext{}
		step.Action.Plan.Facts = []byte(`{"storage":{}}`)
		step.Action.Request = journal.ActionRequested{Manual: test.manual}
		err := storagePart{Storage: Storage{Ceph: api}}.purgeOneOSD(t.Context(), step, ceph.OSD{Ref: ceph.Ref{ID: 3}})
		if api.forced || (err == nil) != test.gone || errors.Is(err, test.refusal) != test.refused {
			t.Errorf("%s: forced %v, %v", name, api.forced, err)
		}
		if err != nil && strings.HasSuffix(err.Error(), "\n") {
			t.Errorf("%s: it gives no reason: %v", name, err)
		}
	}
}
