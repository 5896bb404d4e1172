package hosttask_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// ten has as many pods left behind as may run, of which all become the same.
func ten(t *testing.T, program hosttasksim.Program) *hosttasksim.Cluster {
	t.Helper()
	programs := map[string]hosttasksim.Program{}
	for i := range hosttask.AtOnce {
		programs[fmt.Sprint(i)] = program
	}
	c := leftBehind(t, programs)
	c.Add("x")
	c.Add("y")
	return c
}

// TestWhoFindsNoPlaceIsToldAfterAMinute: whoever waits before it. Until then its step keeps
// nobody from ending it.
func TestWhoFindsNoPlaceIsToldAfterAMinute(t *testing.T) {
	for stops, want := range map[time.Duration]error{time.Hour: hosttask.ErrBusy, 5 * time.Second: context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			c := hosttasksim.New()
			for i := range hosttask.AtOnce {
				node := fmt.Sprint(i)
				c.Add(node)
				c.Set(node, hosttasksim.Program{Hangs: true})
				task, owner := on(node)
				task.Limit = journal.Duration(time.Hour)
				if err := ekco(c).Make(t.Context(), task, owner); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), stops)
			defer stop()
			one, began, errs := ekco(c), time.Now(), make(chan error)
			for _, node := range []string{"x", "y"} {
				c.Add(node)
				task, owner := on(node)
				go func() { errs <- one.Make(ctx, task, owner) }()
			}
			for range 2 {
				if err := <-errs; !errors.Is(err, want) {
					t.Errorf("it ends with %v, want %v", err, want)
				}
			}
			if took := time.Since(began); took != min(stops, time.Minute) {
				t.Errorf("they were told after %s", took)
			}
		})
	}
}

// TestWhatHasEndedTakesNoPlace: well or not.
func TestWhatHasEndedTakesNoPlace(t *testing.T) {
	for name, dies := range map[string]bool{"well": false, "not well": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := ten(t, hosttasksim.Program{Dies: dies})
				pass(10 * time.Second)
				task, owner := on("x")
				began := time.Now()
				if err := ekco(c).Make(t.Context(), task, owner); err != nil || time.Since(began) > 0 {
					t.Errorf("it waited for %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// unsafe is an API server that makes no pod that has something of its host.
type unsafe struct{ *hosttasksim.Cluster }

func (unsafe) CreateObject(context.Context, kube.Ref, json.RawMessage) (json.RawMessage, error) {
	return nil, fmt.Errorf("%w: pods is forbidden: violates PodSecurity: hostPath volumes", kube.ErrForbidden)
}

func TestWhatPodSecurityRefusesIsNoLackOfPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hosttasksim.New("a")
		task, owner := on("a")
		err := hosttask.New(unsafe{c}, c, hosttasksim.Namespace, slog.New(slog.DiscardHandler)).Make(t.Context(), task, owner)
		if err == nil || !strings.Contains(err.Error(), "pod-security.kubernetes.io/enforce=privileged") || strings.Contains(err.Error(), "lacks the permission") {
			t.Error(err)
		}
	})
}

// TestWhatIsNotThereIsRemoved: and it is gone, also where the name is another's by now.
func TestWhatIsNotThereIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {}})
		task, owner := on("a")
		next := ekco(c)
		for range 2 {
			if err := next.Remove(t.Context(), task, owner); err != nil {
				t.Error(err)
			}
			if gone, err := next.Gone(t.Context(), task, owner); err != nil || !gone {
				t.Errorf("it is gone: %t, %v", gone, err)
			}
		}
		c.Put(podOf(task, owner), `{"status":{"phase":"Running"}}`)
		err := next.Remove(t.Context(), task, owner)
		if gone, looked := next.Gone(t.Context(), task, owner); errors.Join(err, looked) != nil || !gone || len(c.Pods()) != 1 {
			t.Errorf("it is gone: %t, %v, %v, and left are %q", gone, err, looked, c.Pods())
		}
	})
}
