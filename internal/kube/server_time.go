package kube

import (
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ServerTime returns what the API server's clock shows now, going by its last
// answer and what has passed since, and false before the first one. It asks
// nothing. It is off by as much as that answer took, by a second, since its
// header Date has whole ones, and by how long this machine slept since.
func (c *Client) ServerTime() (time.Time, bool) { return c.serverClock.now() }

// serverClock is the API server's clock as it was last seen.
type serverClock struct{ seen atomic.Pointer[serverTime] }

type serverTime struct {
	// date is what the server said, at a moment of this process.
	date, at time.Time
}

func (s *serverClock) now() (time.Time, bool) {
	seen := s.seen.Load()
	if seen == nil {
		return time.Time{}, false
	}
	return seen.date.Add(time.Since(seen.at)), true
}

func (s *serverClock) wrap(next http.RoundTripper) http.RoundTripper {
	return &datingTransport{next: next, clock: s}
}

// datingTransport reads the date of every answer.
type datingTransport struct {
	next  http.RoundTripper
	clock *serverClock
}

var _ utilnet.RoundTripperWrapper = (*datingTransport)(nil)

// RoundTrip sends the request and looks at the answer's date.
func (t *datingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.seen.Store(&serverTime{date: date.UTC(), at: time.Now()})
	}
	return response, nil
}

// WrappedRoundTripper lets client-go reach the connections below.
func (t *datingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
