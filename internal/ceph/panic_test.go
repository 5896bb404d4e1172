package ceph

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/replicatedhq/ekco/internal/sidebyside"
)

// defective is a Runner with a defect.
type defective struct{}

func (defective) Run(context.Context, []string) ([]byte, []byte, int, error) { panic("a defect") }

func TestAPanicWhileCephIsAskedReachesEveryoneWhoWaitsForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(defective{}, Options{})
		var asking sync.WaitGroup
		for range 3 {
			asking.Go(func() {
				caught := sidebyside.Catch(func() { _, _ = client.Tree(t.Context()) })
				if caught == nil || caught.Value != "a defect" || !strings.Contains(string(caught.Stack), "defective.Run") {
					t.Errorf("caught %v", caught)
				}
			})
		}
		asking.Wait()
	})
}

func TestThePanicOfAQuestionThatEveryoneLeftReachesTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(defective{}, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if caught := sidebyside.Catch(func() { _, _ = client.Health(ctx) }); caught == nil {
			t.Error("nothing was caught")
		}
	})
}
