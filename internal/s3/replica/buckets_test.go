package replica_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

func TestManyBucketsTakeNotMuchLongerThanFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target := s3sim.New(), s3sim.New()
		for i := range 600 {
			name := fmt.Sprintf("bucket-%03d", i)
			source.AddBucket(name, s3.Settings{s3.BucketTags: name})
			source.Write(name, "key", "content", s3.Attributes{}, time.Now())
		}
		source.SetLatency(20 * time.Millisecond)
		target.SetLatency(20 * time.Millisecond)
		began := time.Now()
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("to prepare them took %s", took)
		}
		began = time.Now()
		if result, err := replica.Pass(t.Context(), source, target, replica.Options{}); err != nil || result.Copied != 600 {
			t.Fatalf("%v: %+v", err, result)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("to copy them took %s", took)
		}
		report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{Sample: replica.DefaultSample})
		if err != nil || !report.Same() || report.Versions != 600 {
			t.Fatalf("%v: %+v", err, report)
		}
		if report.Listed > 10*time.Second || report.Listed <= 0 {
			t.Errorf("to list them took %s", report.Listed)
		}
		if source.Dump() != target.Dump() {
			t.Error("they are not the same")
		}
	})
}

func TestThePositionDoesNotPassABucketThatIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target := s3sim.New(), s3sim.New()
		for _, name := range []string{"a", "b", "c"} {
			source.AddBucket(name, nil)
			for i := range 5 {
				source.Write(name, fmt.Sprint(i), "content", s3.Attributes{}, time.Now())
			}
		}
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		held, release := "put b/2", make(chan struct{})
		target.BeforeEffect = func(effect string) {
			if effect == held {
				<-release
			}
		}
		var mu sync.Mutex
		var reached []string
		ended := make(chan error, 1)
		go func() {
			_, err := replica.Pass(t.Context(), source, target, replica.Options{CheckpointObjects: 1, Checkpoint: func(at replica.Position) error {
				mu.Lock()
				defer mu.Unlock()
				reached = append(reached, fmt.Sprintf("%s/%s %t", at.Bucket, at.Key, at.Complete))
				return nil
			}})
			ended <- err
		}()
		synctest.Wait()
		mu.Lock()
		last := reached[len(reached)-1]
		mu.Unlock()
		if last != "a/ true" && last != "b/0 false" && last != "b/1 false" {
			t.Errorf("while b/2 is not done, the position is %s", last)
		}
		if !strings.Contains(target.Dump(), "c map") || strings.Count(target.Dump(), "content") != 14 {
			t.Errorf("the others are not done:\n%s", target.Dump())
		}
		close(release)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if last := reached[len(reached)-1]; last != "c/ true" {
			t.Errorf("at the end the position is %s", last)
		}
	})
}

func TestAPanicOfEachWorkerEndsAPass(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	source.AddBucket("bucket", nil)
	for i := range 300 {
		source.Write("bucket", fmt.Sprint(i), "content", s3.Attributes{}, time.Now())
	}
	if _, err := replica.Prepare(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	target.BeforeEffect = func(string) { panic("a defect") }
	caught := parallel.Catch(func() {
		_, err := replica.Pass(t.Context(), source, target, replica.Options{Workers: 2})
		t.Errorf("the pass ended with %v", err)
	})
	if caught == nil || caught.Value != "a defect" {
		t.Errorf("caught %v", caught)
	}
}

func TestABusySourceIsToldToHaveChangedAndNotToDiffer(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	source.AddBucket("bucket", nil)
	for i := range 500 {
		source.Write("bucket", fmt.Sprint(i), "content", s3.Attributes{}, time.Now())
	}
	if _, err := replica.Prepare(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	states := func() map[string]replica.State {
		report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{})
		if err != nil || report.Count != 500 || len(report.Differences) != 500 {
			t.Fatalf("%v: %d differences of %d", err, len(report.Differences), report.Count)
		}
		all := make(map[string]replica.State)
		for _, d := range report.Differences {
			all[d.Key] = d.State
		}
		return all
	}
	first := states()
	source.Write("bucket", "7", "other content", s3.Attributes{}, time.Now())
	source.Write("bucket", "8", "content", s3.Attributes{Tags: map[string]string{"a": "b"}}, time.Now())
	for key, state := range states() {
		if changed := key == "7" || key == "8"; changed == (state == first[key]) {
			t.Errorf("object %s: changed %t, state the same %t", key, changed, state == first[key])
		}
	}
}
