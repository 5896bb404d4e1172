package purge_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// forced returns the notes on OSDs that are purged although Ceph refuses.
func (s *whole) forced() []string {
	return slices.DeleteFunc(s.Story(), func(line string) bool {
		return !strings.HasPrefix(line, "noted purge-osd ") || !strings.Contains(line, `"forced"`)
	})
}

func (s *whole) purges() (effects []string) {
	for _, effect := range s.ceph.Effects() {
		if strings.HasPrefix(effect.Name, "osd-purge") && effect.Changed {
			effects = append(effects, effect.Name)
		}
	}
	slices.Sort(effects)
	return effects
}

func TestCephsOwnCheckOfAPurgeIsOverruledOnlyOnRecord(t *testing.T) {
	checked := []string{"osd-purge 107", "osd-purge 12", "osd-purge 3"}
	overruled := []string{"osd-purge 107 by force", "osd-purge 12 by force", "osd-purge 3 by force"}
	for name, test := range map[string]struct {
		stuck   bool
		request journal.ActionRequested
		want    []string
		record  string
	}{
		"all data has moved":                           {want: checked},
		"all data has moved, and a person asks":        {request: journal.ActionRequested{Manual: true}, want: checked},
		"Ceph cannot recover":                          {stuck: true, want: overruled, record: "needs 3 copies on different hosts; only 2 are left"},
		"a person asks, though not all data has moved": {stuck: true, request: journal.ActionRequested{Manual: true}, want: overruled, record: "a person asked for the purge"},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				if test.stuck {
					s.ceph.AddPool("replicapool", 3, 2)
				}
				var unsaid atomic.Int32
				s.ceph.BeforeEffect = func(effect string) {
					id, is := strings.CutSuffix(effect, " by force")
					if is && !slices.ContainsFunc(s.forced(), func(note string) bool {
						return strings.Contains(note, test.record) && strings.Contains(note, strings.TrimPrefix(id, "osd-purge "))
					}) {
						unsaid.Add(1)
					}
				}
				s.ask(test.request)
				s.Start(s.cfg()).End()
				s.wantTraces()
				if got := s.purges(); !slices.Equal(got, test.want) || unsaid.Load() > 0 {
					t.Errorf("it did %q, of which %d were not on record before", got, unsaid.Load())
				}
				if got := s.forced(); (len(got) > 0) != test.stuck {
					t.Errorf("on record is %q", got)
				}
			})
		})
	}
}

// TestAnOSDThatIsNotSafeAtTheLastMomentIsNotPurgedAutomatically: the preflight passed before. A person who only
// joined the purge saw no warning of it.
func TestAnOSDThatIsNotSafeAtTheLastMomentIsNotPurgedAutomatically(t *testing.T) {
	for name, joined := range map[string]bool{"automatic": false, "joined": true} {
		t.Run(name, func(t *testing.T) { notPurgedAtTheLastMoment(t, joined) })
	}
}

func notPurgedAtTheLastMoment(t *testing.T, joined bool) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-purge") {
				s.ceph.SetDegraded(true, 3, 12, 107)
			}
		}
		s.ask(journal.ActionRequested{})
		if joined {
			s.Append("cli:root@a", &journal.ActionJoined{}, journal.TypeActionJoined)
		}
		r := s.Start(s.cfg())
		s.Pass(10 * time.Minute)
		if got := s.purges(); len(got) > 0 {
			t.Errorf("it did %q", got)
		}
		s.ceph.BeforeEffect = nil
		s.ceph.SetDegraded(false, 3, 12, 107)
		r.End()
		s.wantTraces()
		if got := s.forced(); len(got) > 0 {
			t.Errorf("on record is %q", got)
		}
	})
}

// TestAnOSDThatIsReplacedBeforeItIsPurgedByForceIsGone: its id belongs to an OSD of another node.
func TestAnOSDThatIsReplacedBeforeItIsPurgedByForceIsGone(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AddPool("replicapool", 3, 2)
		var once sync.Once
		s.ceph.BeforeEffect = func(effect string) {
			if effect == "osd-purge 3 by force" {
				once.Do(func() {
					s.ceph.RemoveOSD(3)
					s.ceph.AddHost("w9", 3)
				})
			}
		}
		s.ask(journal.ActionRequested{Manual: true})
		s.Start(s.cfg()).End()
		// The others may need no force: that depends on which of the three is purged last.
		got := s.purges()
		if s.Count("failed purge-osd") > 0 || len(got) != 2 || !strings.HasPrefix(got[0], "osd-purge 107") || !strings.HasPrefix(got[1], "osd-purge 12") {
			t.Errorf("it did %q: %q", got, s.Story())
		}
	})
}
