package s3_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/s3"
)

// TestRemovalsAreHeard: of what a server reports only what certainly removed something counts. The server has a region
// of its own.
func TestRemovalsAreHeard(t *testing.T) {
	told := []string{
		`{"Records":null}`,
		`{"Records":[{"eventName":"s3:ObjectRemoved:Delete","eventTime":"2026-11-29T10:00:00.125Z","s3":{"bucket":{"name":"b"},"object":{"key":"a b/ü","versionId":"v1"}}}]}`,
		`{"Records":[{"eventName":"s3:ObjectRemoved:Delete","eventTime":"2026-11-29T10:00:01Z","s3":{"bucket":{"name":"b"},"object":{"key":"plain"}}}]}`,
		` {"Records":[{"eventName":"s3:ObjectRemoved:DeleteMarkerCreated","eventTime":"2026-11-29T10:00:01Z","s3":{"bucket":{"name":"b"},"object":{"key":"marked","versionId":"m"}}}]}`,
		`{"Records":[{"eventName":"s3:ObjectRemoved:NoOP","eventTime":"2026-11-29T10:00:01Z","s3":{"bucket":{"name":"b"},"object":{"key":"never there"}}}]}`,
		`{"Records":[{"eventName":"s3:ObjectRemoved:DeleteAllVersions","eventTime":"2026-11-29T10:00:02Z","s3":{"bucket":{"name":"b"},"object":{"key":"all"}}}]}`,
		`{"Records":[{"eventName":"s3:BucketRemoved:*","eventTime":"2026-11-29T10:00:03Z","s3":{"bucket":{"name":"gone"},"object":{"key":""}}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "/eu-here/") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-here</Region></Error>`)
			return
		}
		if events := r.URL.Query()["events"]; r.URL.Path != "/" || !slices.Equal(events, []string{"s3:ObjectRemoved:*", "s3:BucketRemoved:*"}) {
			t.Errorf("it is asked for %s, %q", r.URL.Path, events)
		}
		for _, line := range told {
			_, _ = fmt.Fprintln(w, line)
		}
	}))
	defer server.Close()
	client, err := s3.NewClient(s3.Endpoint{Address: strings.TrimPrefix(server.URL, "http://"), Credentials: s3.Credentials{AccessKey: "a", SecretKey: "b"}}, s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var got []s3.Removal
	if err := client.ListenForRemovals(t.Context(), func(r s3.Removal) { got = append(got, r) }); err == nil {
		t.Error("the end of the connection is no error")
	}
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	want := []s3.Removal{
		{Bucket: "b", Key: "a b/ü", ID: "v1", At: at.Add(125 * time.Millisecond)},
		{Bucket: "b", Key: "plain", ID: s3.NullVersion, At: at.Add(time.Second)},
		{Bucket: "b", Key: "never there", ID: s3.NullVersion, At: at.Add(time.Second), Nothing: true},
		{Bucket: "b", Key: "all", At: at.Add(2 * time.Second)},
		{Bucket: "gone", At: at.Add(3 * time.Second)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	server.Close()
	if err := client.ListenForRemovals(t.Context(), nil); err == nil {
		t.Error("without a server nothing fails")
	}
}
