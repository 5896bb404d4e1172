package purge_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// boom panics in the way defects do.
func boom() {
	var facts any = "text"
	_ = facts.(fmt.Stringer)
}

// defectiveCeph panics where it is told to.
type defectiveCeph struct {
	ceph.API
	inHealth, inTree bool
}

func (d *defectiveCeph) Health(ctx context.Context) (ceph.Health, error) {
	if d.inHealth {
		boom()
	}
	return d.API.Health(ctx)
}

func (d *defectiveCeph) Tree(ctx context.Context) (ceph.Tree, error) {
	if d.inTree {
		boom()
	}
	return d.API.Tree(ctx)
}

// defective puts the defects between the purge and its Ceph.
func (s *whole) defective() *defectiveCeph {
	defects := &defectiveCeph{API: s.ceph}
	s.options = func(*actionstest.Fuse) []purge.Option {
		return []purge.Option{
			purge.WithStorage(purge.Storage{Ceph: defects, Rook: s.rook}),
			purge.WithControlPlane(purge.ControlPlane{Kubeadm: s.Cluster, Etcd: s.etcd.Dial}),
		}
	}
	return defects
}

// wantStack reports a log without the stack of the panic itself.
func (s *whole) wantStack() {
	s.T.Helper()
	if !strings.Contains(s.Logged(), "purge_test.boom") {
		s.T.Errorf("the log has no stack of the panic:\n%s", s.Logged())
	}
}

func TestAPanicInWhatAPreflightAsksSideBySideFailsTheStepAlone(t *testing.T) {
	for name, set := range map[string]func(d *defectiveCeph, cfg actions.Config){
		"the health": func(d *defectiveCeph, _ actions.Config) { d.inHealth = true },
		"the OSD tree, once it was captured": func(d *defectiveCeph, cfg actions.Config) {
			var once sync.Once
			cfg.Preflights["Paused"] = slowly(time.Second, func() { once.Do(func() { d.inTree = true }) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				defects := s.defective()
				cfg := s.cfg()
				set(defects, cfg)
				s.ask(journal.ActionRequested{})
				stalled := s.Start(cfg)
				s.Pass(time.Hour)
				stalled.Halt()
				failed := false
				for _, step := range s.Record().Steps {
					failed = failed || strings.Contains(step.LastError, "a defect of EKCO: panic: interface conversion")
				}
				if !failed {
					t.Errorf("no step failed: %q", s.Story())
				}
				s.wantStack()
			})
		})
	}
}

func TestAPanicWhileANodeIsTracedIsADoubtAndOtherPlacesAreAsked(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.defective().inTree = true
		s.etcd.Add("w8", "10.9.0.8")
		traced := s.trace("w8")
		if len(traced.Doubts) != 1 || !strings.Contains(traced.Doubts[0], "a defect of EKCO: panic") {
			t.Errorf("doubts %q", traced.Doubts)
		}
		if len(traced.Found) != 1 || !strings.Contains(traced.Found[0], "etcd member w8") {
			t.Errorf("found %q", traced.Found)
		}
		s.wantStack()
	})
}
