package kube

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestTheAPIServersClockIsReadFromAnyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := 3 * time.Hour
		s := newServer(t, map[string]any{
			"GET /api/v1/nodes/a": apierrors.NewNotFound(nodes, "a"),
			"GET /readyz": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			},
			"GET /api/v1/nodes/undated": func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil
				w.WriteHeader(http.StatusNotFound)
			},
		})
		c := s.client(Options{})
		if now, known := c.ServerTime(); known {
			t.Errorf("it is %s before anything was answered", now)
		}
		wantAhead := func(want time.Duration) {
			t.Helper()
			now, known := c.ServerTime()
			if off := time.Until(now) - want; !known || off != 0 {
				t.Errorf("the server's clock is %s ahead, known %t, want %s", time.Until(now), known, want)
			}
		}
		_, _ = c.Node(t.Context(), "a") // also a refusal has a date
		wantAhead(0)
		if err := c.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantAhead(ahead)
		_, _ = c.Node(t.Context(), "undated")
		wantAhead(ahead)
		s.Close()
		_, _ = c.Node(t.Context(), "a") // there is no answer
		wantAhead(ahead)
	})
}
