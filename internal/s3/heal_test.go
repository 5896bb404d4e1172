package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers are what a server says in turn of how far a pass is; the last one again and again.
func answers(all ...healStatus) func() (healStatus, error) {
	return func() (healStatus, error) {
		now := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return now, nil
	}
}

func healItems(first, last int64, states ...string) (items []healItem) {
	for index := first; index <= last; index++ {
		item := healItem{Index: index, Bucket: "b", Object: fmt.Sprint(index)}
		for _, state := range states {
			item.After.Drives = append(item.After.Drives, struct{ Endpoint, State string }{"http://d", state})
		}
		items = append(items, item)
	}
	return items
}

func TestAPassCountsOnlyWhenAllOfItWasSeenAndItsEndLasts(t *testing.T) {
	started := time.Now()
	running := func(items ...healItem) healStatus {
		return healStatus{Summary: "running", StartTime: started, Items: items}
	}
	finished := func(items ...healItem) healStatus {
		return healStatus{Summary: healFinished, StartTime: started, Items: items}
	}
	forgotten := healStatus{Summary: healFinished}
	for name, test := range map[string]struct {
		says  []healStatus
		items int64
		lacks int
		fails string
	}{
		"all in one":                 {says: []healStatus{finished(healItems(1, 3, "ok", "ok")...), finished()}, items: 3},
		"in parts":                   {says: []healStatus{running(), running(healItems(1, 2, "ok")...), running(), finished(healItems(3, 4, "ok")...), finished()}, items: 4},
		"of nothing":                 {says: []healStatus{finished()}},
		"not on one drive":           {says: []healStatus{finished(healItems(1, 2, "ok", "missing")...), finished()}, items: 2, lacks: 2},
		"removed meanwhile":          {says: []healStatus{finished(healItems(1, 2, "missing", "missing")...), finished()}, items: 2},
		"on a drive that is away":    {says: []healStatus{finished(healItems(1, 1, "missing", "offline")...), finished()}, items: 1, lacks: 1},
		"on no drive":                {says: []healStatus{finished(healItems(1, 2)...), finished()}, items: 2, lacks: 2},
		"with an error":              {says: []healStatus{finished(healItem{Index: 1, Detail: "too slow"}), finished()}, items: 1, lacks: 1},
		"whose begin another took":   {says: []healStatus{running(healItems(5, 6, "ok")...), finished()}, fails: ErrHealing.Error()},
		"of which another took":      {says: []healStatus{running(healItems(1, 2, "ok")...), finished(healItems(4, 5, "ok")...), finished()}, fails: ErrHealing.Error()},
		"that was forgotten":         {says: []healStatus{running(healItems(1, 2, "ok")...), forgotten}, fails: "does not know of it any more"},
		"that was stopped":           {says: []healStatus{running(healItems(1, 2, "ok")...), finished(), forgotten}, fails: "does not know of it any more"},
		"that gave up":               {says: []healStatus{running(), {Summary: healStopped, StartTime: started, Detail: "no quorum"}}, fails: "it gave up: no quorum"},
		"that ended, and had more":   {says: []healStatus{finished(healItems(1, 2, "ok")...), finished(healItems(3, 3, "corrupt")...), finished()}, items: 3, lacks: 1},
		"with more than can be told": {says: []healStatus{finished(healItems(1, mostLacking+7, "corrupt")...), finished()}, items: mostLacking + 7, lacks: mostLacking + 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := int64(0)
				pass, err := follow(t.Context(), answers(test.says...), func(items int64) { told = items })
				switch {
				case test.fails != "":
					if err == nil || !strings.Contains(err.Error(), test.fails) {
						t.Errorf("it comes to %+v, %v, want %q", pass, err, test.fails)
					}
				case err != nil || pass.Items != test.items || told != test.items || len(pass.Lacking)+int(pass.More) != test.lacks || pass.Whole() != (test.lacks == 0):
					t.Errorf("it comes to %d items, of which %d were told, %d and %d lacking: %v", pass.Items, told, len(pass.Lacking), pass.More, err)
				}
			})
		})
	}
}

func TestAPassEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := follow(ctx, answers(healStatus{Summary: "running"}), func(int64) {})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
	})
}
