package sim_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
)

var (
	errSilent  = errors.New("silent")
	errRefused = errors.New("refused")
)

func changes() (bool, error) { return true, nil }

func TestAnEffectHappensBetweenTheHooksAndIsRecorded(t *testing.T) {
	var seen []string
	c := sim.NewControls(errSilent)
	c.BeforeEffect = func(effect string) { seen = append(seen, "before "+effect) }
	c.AfterEffect = func(effect string) { seen = append(seen, "after "+effect) }
	err := sim.Do(&c, "remove x", "remove", func() (bool, error) { seen = append(seen, "effect"); return true, nil })
	refused := sim.Do(&c, "remove x", "remove", func() (bool, error) { return false, errRefused })
	if err != nil || !errors.Is(refused, errRefused) {
		t.Errorf("errors %v, %v", err, refused)
	}
	if want := []string{"before remove", "effect", "after remove", "before remove", "after remove"}; !slices.Equal(seen, want) {
		t.Errorf("saw %q", seen)
	}
	want := []sim.Effect{{Name: "remove", Changed: true}, {Name: "remove"}}
	if !slices.Equal(c.Effects(), want) || c.Count("remove") != 2 || c.Count("add") != 0 {
		t.Errorf("effects %+v", c.Effects())
	}
}

func TestOneAnswerIsLostAndItsEffectIsNot(t *testing.T) {
	c := sim.NewControls(errSilent)
	c.LoseAnswer("remove")
	if err := sim.Do(&c, "add x", "add", changes); err != nil {
		t.Error(err)
	}
	if err := sim.Do(&c, "remove x", "remove", changes); !errors.Is(err, errSilent) {
		t.Errorf("error is %v", err)
	}
	if err := sim.Do(&c, "remove x", "remove", changes); err != nil || c.Count("remove") != 2 {
		t.Errorf("error is %v, effects %+v", err, c.Effects())
	}
}

func TestWhoSeesAChangeCanSeeThatItIsRecorded(t *testing.T) {
	c := sim.NewControls(errSilent)
	changed := make(chan struct{})
	var onlooker sync.WaitGroup
	onlooker.Go(func() {
		<-changed
		if c.Count("remove") != 1 {
			t.Error("the change was there before its record")
		}
	})
	if err := sim.Do(&c, "remove x", "remove", func() (bool, error) { close(changed); return true, nil }); err != nil {
		t.Error(err)
	}
	onlooker.Wait()
}

func TestACallTakesItsTimeUnlessItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := sim.NewControls(errSilent)
		c.SetLatency(time.Minute)
		began := time.Now()
		if err := sim.Pass(t.Context(), &c); err != nil || time.Since(began) != time.Minute {
			t.Errorf("took %s, %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := sim.Pass(ctx, &c); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("took %s, %v", time.Since(began), err)
		}
	})
}

func TestWhatAnAPIServerRefusesHasNoEffect(t *testing.T) {
	a := sim.NewAPIServer()
	try := func(verb string) error { return sim.Change(t.Context(), &a, verb, "effect", changes) }
	a.Forbid("get nodes", "delete nodes")
	a.Allow("get nodes")
	if err := try("get nodes"); err != nil {
		t.Error(err)
	}
	if err := try("delete nodes"); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("error is %v", err)
	}
	a.Outage(true)
	if err := try("get nodes"); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	a.Outage(false)
	if err := try("get nodes"); err != nil || a.Count("effect") != 2 {
		t.Errorf("error is %v, effects %+v", err, a.Effects())
	}
}
