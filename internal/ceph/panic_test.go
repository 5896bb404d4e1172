package ceph

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
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
				caught := parallel.Catch(func() { _, _ = client.Tree(t.Context()) })
				if caught == nil || caught.Value != "a defect" || !strings.Contains(string(caught.Stack), "defective.Run") {
					t.Errorf("caught %v", caught)
				}
			})
		}
		asking.Wait()
	})
}

// defectiveAtItsEnd is a Runner with a defect that shows when it is to end.
type defectiveAtItsEnd struct{}

func (defectiveAtItsEnd) Run(ctx context.Context, _ []string) ([]byte, []byte, int, error) {
	<-ctx.Done()
	panic("a defect")
}

func TestThePanicOfAQuestionThatEveryoneLeftReachesTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(defectiveAtItsEnd{}, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if caught := parallel.Catch(func() { _, _ = client.Health(ctx) }); caught == nil {
			t.Error("nothing was caught")
		}
	})
}
