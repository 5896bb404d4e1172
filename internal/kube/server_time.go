package kube

import (
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ServerTime implements [API]. It adds the time since the last answer to that answer's header Date. The result can be
// wrong by the duration of that request, by a second (Date has whole seconds), and by the time for which this machine
// has slept since the answer. There is no result before the first answer.
func (c *Client) ServerTime() (time.Time, bool) { return c.serverClock.now() }

// serverClock has the API server's time in its last answer.
type serverClock struct{ seen atomic.Pointer[serverTime] }

type serverTime struct {
	// date is the server's time. at is the time of this process at the same moment.
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

// RoundTrip sends the request and reads the answer's date.
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

// WrappedRoundTripper gives client-go the inner transport.
func (t *datingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
