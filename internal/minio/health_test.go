package minio_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/minio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers as MinIO does, and keeps what it was asked.
func server(t *testing.T, answer http.HandlerFunc) (address string, asked *string) {
	t.Helper()
	asked = new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.Method + " " + r.URL.String()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), asked
}

func TestAServerIsAskedForItsHealth(t *testing.T) {
	headers, code := map[string]string{}, 200
	address, asked := server(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
	})
	ask := func(question minio.Question, want minio.Answer, url string) {
		t.Helper()
		got, err := minio.NewHTTP().Health(t.Context(), address, question)
		if err != nil || got != want || *asked != "GET "+url {
			t.Errorf("%v: %+v to %s, want %+v", err, got, *asked, want)
		}
	}
	ask(minio.Now, minio.Answer{Yes: true, Code: 200}, "/minio/health/cluster")
	headers["X-Minio-Write-Quorum"], headers["X-Minio-Healing-Drives"] = "4", "2"
	ask(minio.WithoutYou, minio.Answer{Yes: true, Code: 200, Quorum: 4, Healing: 2}, "/minio/health/cluster?maintenance=true")
	for _, code = range []int{412, 503, 204, 302} {
		headers["Location"] = "/"
		ask(minio.Now, minio.Answer{Code: code, Quorum: 4, Healing: 2}, "/minio/health/cluster")
	}
	code, headers["X-Minio-Healing-Drives"] = 200, "some"
	if got, err := minio.NewHTTP().Health(t.Context(), address, minio.Now); err == nil || !strings.Contains(err.Error(), `X-Minio-Healing-Drives is "some"`) {
		t.Errorf("%v: %+v", err, got)
	}
}

// TestAnAnswerWithoutAnEndIsNotWaitedFor: and no connection is left, which the end of all
// tests looks for.
func TestAnAnswerWithoutAnEndIsNotWaitedFor(t *testing.T) {
	endless, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	})
	if got, err := minio.NewHTTP().Health(t.Context(), endless, minio.Now); err != nil || !got.Yes {
		t.Errorf("%v: %+v", err, got)
	}
	hangs, _ := server(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := minio.NewHTTP().Health(ctx, hangs, minio.Now); err == nil || got.Yes {
		t.Errorf("it answers %+v", got)
	}
}
