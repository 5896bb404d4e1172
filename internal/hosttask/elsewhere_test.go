package hosttask_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
)

func TestWhereATaskMayRunElsewhereIsToldWhoeverHadItRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{
			"dies": {Dies: true}, "ends": {}, "hangs": {Hangs: true}, "late": {Start: time.Hour}, "here": {Hangs: true}, "other": {Hangs: true},
		})
		task, owner := on("other")
		if err := ekco(c).Remove(t.Context(), task, owner); err != nil {
			t.Fatal(err)
		}
		if task.Name = "something-else"; ekco(c).Make(t.Context(), task, owner) != nil {
			t.Fatal("it cannot be made")
		}
		pass(10 * time.Second)
		nodes, err := ekco(c).Elsewhere(t.Context(), "look", "here")
		if want := []string{"hangs", "late"}; err != nil || !slices.Equal(nodes, want) {
			t.Errorf("%v: %q, want %q", err, nodes, want)
		}
		c.Forbid("list pods")
		if nodes, err := ekco(c).Elsewhere(t.Context(), "look", "here"); err == nil {
			t.Errorf("nobody may tell, and it is %q", nodes)
		}
	})
}
