package purge_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// makesAnew has Rook make the Deployment of osd.12 again after an effect.
func (s *whole) makesAnew(after, uuid string) {
	var made atomic.Bool // steps have their effects side by side
	anew := func(effect string) {
		if strings.HasPrefix(effect, after) && made.CompareAndSwap(false, true) {
			s.rook.AddOSDOf(ceph.Ref{ID: 12, UUID: uuid}, "w1")
		}
	}
	s.ceph.AfterEffect, s.rook.AfterEffect = anew, anew
}

func (s *whole) uuid(id int) string {
	i := slices.IndexFunc(s.refs, func(r ceph.Ref) bool { return r.ID == id })
	return s.refs[i].UUID
}

func TestADeploymentThatRookMakesAgainDoesNotOutliveItsOSD(t *testing.T) {
	for _, after := range []string{"delete-deployment rook-ceph-osd-12", "osd-out", "osd-purge 12", "osd-purge 107", "crush-rm"} {
		t.Run("after "+after, func(t *testing.T) {
			for name, uuid := range map[string]func(s *whole) string{
				"with its UUID": func(s *whole) string { return s.uuid(12) }, "without one": func(*whole) string { return "" },
			} {
				t.Run(name, func(t *testing.T) {
					inWhole(t, func(t *testing.T, s *whole) {
						s.makesAnew(after, uuid(s))
						s.ask(journal.ActionRequested{})
						s.RunToEnd(s.cfg())
						s.wantTraces()
						s.wantOthers()
					})
				})
			}
		})
	}
}

func TestTheDeploymentOfAnotherOSDOfTheSameIDIsLeftAlone(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.makesAnew("osd-purge 12", "00000000-0000-0000-0000-00000000abcd")
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces("rook-ceph-osd-12")
	})
}

func TestTheDeploymentOfAnOSDThatGotTheIDOnAnotherNodeIsLeftAlone(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-purge 12") {
				s.rook.AddOSD(12, "p2")
			}
		}
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if found := s.deploymentsOn("p2"); len(found) != 2 {
			t.Errorf("on p2 are %q", found)
		}
	})
}
