package minio

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
)

// service tells where the Service leads, which takes a while.
type service struct {
	minio.API
	leads atomic.Value
	asked atomic.Int32
	fails error
}

const takes = 10 * time.Millisecond

func newService() *service {
	s := &service{}
	s.leads.Store(journal.MinioServiceSingle)
	return s
}

func (s *service) ServiceTarget(ctx context.Context) (journal.MinioService, string, error) {
	s.asked.Add(1)
	leads := s.leads.Load().(journal.MinioService)
	select {
	case <-ctx.Done():
		return "", "", ctx.Err()
	case <-time.After(takes):
	}
	return leads, "1", s.fails
}

// plainStore is a store as the fence has it behind it.
type plainStore struct{ *s3sim.Store }

func (plainStore) Server(context.Context) (s3.Server, error)  { return s3.Server{}, nil }
func (plainStore) ExportIAM(context.Context) (*s3.IAM, error) { return nil, nil }
func (plainStore) ImportIAM(context.Context, *s3.IAM, func(string) bool) ([]string, error) {
	return nil, nil
}
func (plainStore) Close() {}

func TestRemovalsShareTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target, api := s3sim.New(), s3sim.New(), newService()
		const objects = 20_000
		for _, store := range []*s3sim.Store{source, target} {
			store.AddBucket("bucket", nil)
		}
		for i := range objects {
			target.Write("bucket", fmt.Sprintf("object-%06d", i), "", s3.Attributes{}, time.Now())
		}
		began := time.Now()
		result, err := replica.Pass(t.Context(), source, &fencedStore{Store: plainStore{target}, service: newFence(api)}, replica.Options{})
		if err != nil || result.Removed != objects {
			t.Fatalf("%v: removed %+v", err, result.Progress)
		}
		// One after the other it would be over three minutes.
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s with %d questions", took, api.asked.Load())
		}
	})
}

func TestAnAnswerIsSharedOnlyByThoseWhoAskedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newService()
		f := newFence(api)
		first := make(chan error, 1)
		go func() { first <- f.check(t.Context(), 0) }()
		time.Sleep(takes / 2) // the first question is asked, and its answer is old news by now
		api.leads.Store(journal.MinioServiceHA)
		if err := f.check(t.Context(), 0); !errors.Is(err, errServes) {
			t.Errorf("the second: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first: %v", err)
		}
	})
}

func TestWhoStopsAskingStopsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFence(newService())
		ctx, stop := context.WithCancel(t.Context())
		answers := make(chan error, 3)
		go func() { answers <- f.check(ctx, 0) }()
		synctest.Wait()
		go func() { answers <- f.check(ctx, 0) }() // asks for the third, too
		synctest.Wait()
		third := make(chan error, 1)
		go func() { third <- f.check(t.Context(), 0) }()
		synctest.Wait()
		stop()
		for range 2 {
			if err := <-answers; !errors.Is(err, context.Canceled) {
				t.Errorf("who stopped: %v", err)
			}
		}
		if err := <-third; err != nil {
			t.Errorf("who did not: %v", err)
		}
	})
}

// TestWhoRunsOutOfTimeStopsNobodyElse: as [TestWhoStopsAskingStopsNobodyElse], by a deadline.
func TestWhoRunsOutOfTimeStopsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFence(newService())
		ctx, stop := context.WithTimeout(t.Context(), takes/2)
		defer stop()
		answers := make(chan error, 3)
		go func() { answers <- f.check(ctx, 0) }()
		synctest.Wait()
		go func() { answers <- f.check(ctx, 0) }() // asks for the third, too
		synctest.Wait()
		if err := f.check(t.Context(), 0); err != nil {
			t.Errorf("who has time: %v", err)
		}
		for range 2 {
			if err := <-answers; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who had none: %v", err)
			}
		}
	})
}

// TestWhoWaitsForAnothersQuestionIsHeard: an API server that hangs does not hold a stop up.
func TestWhoWaitsForAnothersQuestionIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFence(newService())
		others := make(chan error, 2)
		for range 2 {
			go func() { others <- f.check(t.Context(), 0) }()
			synctest.Wait()
		}
		ctx, stop := context.WithTimeout(t.Context(), takes/2)
		defer stop()
		began := time.Now()
		if err := f.check(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != takes/2 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		for range 2 {
			if err := <-others; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAnAnswerToAnEarlierQuestionOpensNothing once the Service shall lead elsewhere, or be as it
// was seen.
func TestAnAnswerToAnEarlierQuestionOpensNothing(t *testing.T) {
	for _, now := range []struct {
		leads   journal.MinioService
		version string
		is      func(error) bool
	}{
		{journal.MinioServiceDisabled, "", isSelectedElsewhere},
		{journal.MinioServiceSingle, "0", func(err error) bool { return errors.Is(err, errTouched) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFence(newService())
			first := make(chan error, 1)
			go func() { first <- f.check(t.Context(), 0) }()
			time.Sleep(takes / 2)
			f.expect(now.leads, now.version)
			if err := <-first; err != nil {
				t.Errorf("as it should be when it was asked: %v", err)
			}
			if err := f.check(t.Context(), maxReadAgeForAdds); !now.is(err) {
				t.Errorf("should lead to %s in version %q: %v", now.leads, now.version, err)
			}
		})
	}
}

// TestAnAnswerIsAsOldAsItsQuestion: the Service may have been changed right after that.
func TestAnAnswerIsAsOldAsItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newService()
		f := newFence(api)
		for i, after := range []time.Duration{0, maxReadAgeForAdds - 2*takes, takes} {
			time.Sleep(after)
			if err := f.check(t.Context(), maxReadAgeForAdds); err != nil {
				t.Error(err)
			}
			if asked := api.asked.Load(); asked != []int32{1, 1, 2}[i] {
				t.Errorf("after %s more it has asked %d times", after, asked)
			}
		}
	})
}

func TestTheTargetIsChangedOnlyWhileTheServiceLeadsWhereItShall(t *testing.T) {
	for leads, want := range map[journal.MinioService][2]bool{
		journal.MinioServiceSingle:    {true, false},
		journal.MinioServiceDisabled:  {false, true},
		journal.MinioServiceHA:        {false, false},
		journal.MinioServiceInstaller: {false, false},
		journal.MinioServiceOther:     {false, false},
		"":                            {false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newService()
			api.leads.Store(leads)
			f := newFence(api)
			if err := f.check(t.Context(), maxReadAgeForAdds); (err == nil) != want[0] || err != nil && !isSelectedElsewhere(err) {
				t.Errorf("%q, before the switch: %v", leads, err)
			}
			f.expect(journal.MinioServiceDisabled, "")
			if err := f.check(t.Context(), maxReadAgeForAdds); (err == nil) != want[1] || err != nil && !isSelectedElsewhere(err) {
				t.Errorf("%q, in it: %v", leads, err)
			}
			api.fails = errors.New("the API server is away")
			if err := f.check(t.Context(), 0); !errors.Is(err, api.fails) || isSelectedElsewhere(err) {
				t.Errorf("%q, unread: %v", leads, err)
			}
		})
	}
}
