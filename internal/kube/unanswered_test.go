package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// reports are what was told of requests that were not answered.
type reports struct {
	mu   sync.Mutex
	errs []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *reports) all() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs
}

// cutOff begins an answer and hangs up.
func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte("k8s"))
	panic(http.ErrAbortHandler)
}

func coded(code int) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: "told so"}}
}

func TestARequestIsReportedExactlyWhenItsErrorSaysThatTheAPIIsUnavailable(t *testing.T) {
	for name, test := range map[string]struct {
		answer any
		want   bool
	}{
		"answered":              {lostNode(true), false},
		"not found":             {coded(http.StatusNotFound), false},
		"forbidden":             {coded(http.StatusForbidden), false},
		"conflict":              {coded(http.StatusConflict), false},
		"internal error":        {coded(http.StatusInternalServerError), true},
		"unavailable":           {coded(http.StatusServiceUnavailable), true},
		"too many requests":     {coded(http.StatusTooManyRequests), true},
		"credential refused":    {coded(http.StatusUnauthorized), true},
		"hangs":                 {hang, true},
		"breaks off":            {cutOff, true},
		"hangs up before it":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"speaks something else": {"no object", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, map[string]any{"GET /api/v1/nodes/a": test.answer})
				var told reports
				_, err := s.bound(Terms{Unanswered: told.add}, Options{}).Node(t.Context(), "a")
				if says := errors.Is(err, ErrUnavailable); says != test.want {
					t.Errorf("the error is %v", err)
				}
				if reported := len(told.all()) > 0; reported != test.want {
					t.Errorf("%v was reported, after the error %v", told.all(), err)
				}
				for _, err := range told.all() {
					if !errors.Is(err, ErrUnavailable) || !strings.HasPrefix(err.Error(), "get nodes: ") {
						t.Errorf("reported was %v", err)
					}
				}
			})
		})
	}
}

func TestNoRequestIsReportedOfWhichNobodyWaitsForTheAnswer(t *testing.T) {
	ctx, stopWaiting := context.WithCancel(t.Context())
	s := newServer(t, map[string]any{"GET /api/v1/nodes/a": func(_ http.ResponseWriter, r *http.Request) {
		stopWaiting()
		<-r.Context().Done()
	}})
	var told reports
	if _, err := s.bound(Terms{Unanswered: told.add}, Options{}).Node(ctx, "a"); err == nil {
		t.Error("it answered")
	}
	if len(told.all()) != 0 {
		t.Errorf("reported was %v", told.all())
	}
}

func TestWhoTellsOfItsFailuresItselfIsNotReported(t *testing.T) {
	s := newServer(t, map[string]any{"GET /api/v1/nodes/a": coded(http.StatusServiceUnavailable)})
	var told reports
	if _, err := s.bound(Terms{Unanswered: told.add}, Options{}).Node(Unreported(t.Context()), "a"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	if len(told.all()) != 0 {
		t.Errorf("reported was %v", told.all())
	}
}

func TestARefusedChangeIsNoSignOfAnOutage(t *testing.T) {
	var told reports
	s := newServer(t, nil)
	if err := s.bound(Terms{ReadOnly: true, Unanswered: told.add}, Options{}).DeleteNode(t.Context(), "a", "u"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("the error is %v", err)
	}
	if len(told.all()) != 0 {
		t.Errorf("reported was %v", told.all())
	}
}

func TestAnErrorOfATransportIsReportedAsItIsReturned(t *testing.T) {
	refusedUpgrade := func(cause error) error { return &httpstream.UpgradeFailureError{Cause: cause} }
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a connection is refused":              {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		"no certificate that is trusted":       {errors.New("x509: certificate signed by unknown authority"), true},
		"the time is over":                     {context.DeadlineExceeded, true},
		"nobody waits":                         {context.Canceled, false},
		"a WebSocket is not spoken":            {refusedUpgrade(websocket.ErrBadHandshake), false},
		"a WebSocket is forbidden":             {refusedUpgrade(coded(http.StatusForbidden)), false},
		"a WebSocket meets a server in faults": {refusedUpgrade(coded(http.StatusServiceUnavailable)), true},
	} {
		t.Run(name, func(t *testing.T) {
			var told reports
			transport := &reporting{next: roundTrip(func(*http.Request) (*http.Response, error) { return nil, test.err }), report: told.add}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api/api/v1/nodes", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := transport.RoundTrip(request); !errors.Is(err, test.err) { //nolint:bodyclose // it has none
				t.Errorf("the error became %v", err)
			}
			if reported := len(told.all()) == 1; reported != test.want {
				t.Errorf("reported was %v", told.all())
			}
		})
	}
}

func TestAWatchThatEndsIsForItsReadersToJudge(t *testing.T) {
	s := newServer(t, map[string]any{"GET /api/v1/nodes": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;stream=watch")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}})
	var told reports
	watch, err := s.bound(Terms{Unanswered: told.add}, Options{}).Nodes().WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range watch.ResultChan() { // until it ends
	}
	watch.Stop()
	if len(told.all()) != 0 {
		t.Errorf("reported was %v", told.all())
	}
}
