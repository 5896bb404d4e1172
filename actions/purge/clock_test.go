package purge_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// by returns a configuration whose journal is written by a clock that is ahead
// of the process's.
func by(cfg actions.Config, ahead time.Duration) actions.Config {
	cfg.Now = func() time.Time { return time.Now().Add(ahead) }
	return cfg
}

func TestAClockSetBackMakesNoOSDRestForLonger(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.wait = 2 * time.Hour
		const ahead = 3 * time.Hour
		s.Store = memory.New(memory.Clock(func() time.Time { return time.Now().Add(ahead) }))
		s.ask(journal.ActionRequested{})
		r := s.Start(by(s.cfg(), ahead))
		s.Pass(time.Hour)
		r.Halt()
		r = s.Start(by(s.cfg(), 0))
		s.Pass(s.wait - time.Minute)
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		s.Pass(2 * time.Minute)
		s.wantTraces()
		r.End()
	})
}
