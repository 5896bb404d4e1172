package parallel_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/parallel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func defect() { panic("a defect") }

func TestAPanicReachesTheOneWhoWaitsWhenAllTheOthersAreDone(t *testing.T) {
	var others atomic.Int32
	caught := parallel.Catch(func() {
		parallel.Run(func() { others.Add(1) }, func() { parallel.Run(defect) }, func() { others.Add(1) })
	})
	if caught == nil || caught.Value != "a defect" || others.Load() != 2 {
		t.Fatalf("caught %v after %d others", caught, others.Load())
	}
	if stack := string(caught.Stack); !strings.Contains(stack, "parallel_test.defect") || !strings.Contains(caught.Error(), stack) {
		t.Errorf("the stack is not that of the panic:\n%s", stack)
	}
}

func TestWithoutAPanicNothingIsCaught(t *testing.T) {
	ran := false
	if caught := parallel.Catch(func() { parallel.Run(func() { ran = true }) }); caught != nil || !ran {
		t.Errorf("ran: %v, caught %v", ran, caught)
	}
}
