package observers_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// reported reports whether a request of the context is reported if it is not answered.
func reported(ctx context.Context, b *bench) bool {
	told := false
	config := &rest.Config{Host: "https://api", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
	})}
	kube.Terms{Unanswered: func(error) { told = true }}.Bind(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/api/v1/nodes", nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := client.Do(request); err != nil { //nolint:bodyclose // there is none
		b.Fatal(err)
	}
	return told
}

func TestOnlyAPollOfTheAPITellsOfItsFailuresItself(t *testing.T) {
	for _, ofAPI := range []bool{false, true} {
		var mu sync.Mutex
		var got []bool
		watching(t, func(b *bench, _ *observers.Options) {
			ask := func(ctx context.Context) (map[string]lamp, error) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, reported(ctx, b))
				return nil, nil
			}
			b.Sources = func() []observers.Source {
				return []observers.Source{observers.Poll(observers.Polled[lamp]{
					Name: "lamps", Noun: lamps(nil), Ask: ask, Interval: every, OfAPI: ofAPI,
				})}
			}
		}, func(b *bench) { b.Settle() })
		if len(got) == 0 || slices.Contains(got, ofAPI) {
			t.Errorf("of the API %v: reported is %v", ofAPI, got)
		}
	}
}
