package hosttask_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
)

// noticed reports whether it is noticed that the pod of a node is removed.
func noticed(t *testing.T, c *hosttasksim.Cluster, tasks *hosttask.Tasks, node string) bool {
	t.Helper()
	task, owner := on(node)
	changed := tasks.Changed(task, owner)
	if err := ekco(c).Remove(t.Context(), task, owner); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

// TestAWatchThatEndsIsOpenedAgainAfterAPause: also where none is granted for a while.
func TestAWatchThatEndsIsOpenedAgainAfterAPause(t *testing.T) {
	for name, test := range map[string]struct{ ends, back func(*hosttasksim.Cluster) }{
		"it ends":     {(*hosttasksim.Cluster).EndWatches, func(*hosttasksim.Cluster) {}},
		"not granted": {func(c *hosttasksim.Cluster) { c.Forbid("watch pods"); c.EndWatches() }, func(c *hosttasksim.Cluster) { c.Allow("watch pods") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftBehind(t, map[string]hosttasksim.Program{"a": {Hangs: true}, "b": {Hangs: true}})
				tasks := ekco(c)
				task, owner := on("a")
				defer tasks.Leave(task, owner)
				tasks.Changed(task, owner)
				synctest.Wait()
				test.ends(c)
				asked := c.Watched()
				pass(time.Minute)
				if again := c.Watched() - asked; again > 6 {
					t.Errorf("within a minute it was asked for a watch %d times", again)
				}
				test.back(c)
				pass(time.Minute)
				if !noticed(t, c, tasks, "a") {
					t.Error("a change is not noticed after that")
				}
			})
		})
	}
}

// TestWhoLeavesTakesNoNoticesFromOthers: there is one watch for all.
func TestWhoLeavesTakesNoNoticesFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Hangs: true}, "b": {Hangs: true}})
		tasks := ekco(c)
		a, ofA := on("a")
		b, ofB := on("b")
		tasks.Changed(a, ofA)
		tasks.Changed(b, ofB)
		defer tasks.Leave(b, ofB)
		synctest.Wait()
		tasks.Leave(a, ofA)
		synctest.Wait()
		if !noticed(t, c, tasks, "b") {
			t.Error("a change is not noticed any more")
		}
	})
}
