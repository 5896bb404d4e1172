package s3_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// serversTime is the server's clock: its Date header has whole seconds, its request ID nanoseconds.
var serversTime = time.Date(2026, 2, 12, 20, 18, 48, 500_000_000, time.UTC)

// answering returns a client of a server that gives this answer, and what it was asked last: requests
// that are made again come on other connections.
func answering(t *testing.T, status int, answer string) (client *s3.Client, asked func() string) {
	t.Helper()
	return answeringAs(t, fmt.Sprintf("%X", serversTime.UnixNano()), status, answer)
}

// answeringAs is [answering] with a server that answers the request for its time with this request ID.
func answeringAs(t *testing.T, id string, status int, answer string) (client *s3.Client, asked func() string) {
	t.Helper()
	var last atomic.Pointer[string]
	last.Store(new(string))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/minio/health/live" {
			w.Header().Set("Date", serversTime.Format(http.TimeFormat))
			w.Header().Set("X-Amz-Request-Id", id)
			return
		}
		question := r.Method + " " + r.URL.String() + " " + string(body)
		last.Store(&question)
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	client, err := s3.NewClient(s3.Endpoint{Address: strings.TrimPrefix(server.URL, "http://"), Credentials: s3.Credentials{AccessKey: "a", SecretKey: "b"}}, s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, func() string { return *last.Load() }
}

func TestAPassOfHealingThatBeganEarlierIsAnothers(t *testing.T) {
	refusal := func(code string) string { return fmt.Sprintf(`{"Code":%q,"Message":"its token is t0ken"}`, code) }
	begun := func(ago time.Duration) string {
		return fmt.Sprintf(`{"clientToken":"t:1","startTime":%q}`, serversTime.Add(-ago).Format(time.RFC3339Nano))
	}
	for name, test := range map[string]struct {
		status int
		answer string
		want   error
	}{
		"now":                  {200, begun(0), nil},
		"afterwards":           {200, begun(-time.Nanosecond), nil},
		"after some blanks":    {200, "   " + begun(0), nil},
		"just before":          {200, begun(time.Nanosecond), s3.ErrHealing},
		"a while ago":          {200, begun(time.Minute), s3.ErrHealing},
		"it runs":              {400, refusal("XMinioHealAlreadyRunning"), s3.ErrHealing},
		"it runs, said late":   {200, "  " + refusal("XMinioHealAlreadyRunning"), s3.ErrHealing},
		"one of a bucket runs": {400, refusal("XMinioHealOverlappingPaths"), s3.ErrHealing},
		"other credentials":    {403, refusal("SignatureDoesNotMatch"), s3.ErrDenied},
	} {
		client, asked := answering(t, test.status, test.answer)
		got, err := client.BeginHeal(t.Context())
		if !errors.Is(err, test.want) || test.want == nil && (err != nil || got.Token != "t:1") {
			t.Errorf("%s: %+v, %v; want %v", name, got, err, test.want)
		}
		if errors.Is(err, s3.ErrHealing) && strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: the token of another's pass is told: %v", name, err)
		}
		if want := `POST /minio/admin/v3/heal/ {"recursive":true,"scanMode":1}`; asked() != want {
			t.Errorf("%s: asked %q, want %q", name, asked(), want)
		}
	}
	for _, answer := range []string{`{}`, `{"clientToken":"t"}`, strings.Replace(begun(0), "t:1", "", 1), `no JSON`} {
		client, _ := answering(t, 200, answer)
		if got, err := client.BeginHeal(t.Context()); err == nil {
			t.Errorf("%s is taken for %+v", answer, got)
		}
	}
}

// If the request ID is not the time, the Date header decides.
func TestBeginHealUsesDateIfRequestIDIsNoTime(t *testing.T) {
	second := serversTime.Truncate(time.Second)
	for _, id := range []string{
		"", "17A3B2-of another kind", "7FFFFFFFFFFFFFFFFF", "0", "-1",
		fmt.Sprintf("%X", second.Add(-time.Nanosecond).UnixNano()), fmt.Sprintf("%X", second.Add(time.Second).UnixNano()),
	} {
		for began, want := range map[time.Time]error{second: nil, second.Add(-time.Nanosecond): s3.ErrHealing} {
			client, _ := answeringAs(t, id, 200, fmt.Sprintf(`{"clientToken":"t:1","startTime":%q}`, began.Format(time.RFC3339Nano)))
			if got, err := client.BeginHeal(t.Context()); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("with ID %q, a pass that began at %s: %+v, %v; want %v", id, began, got, err, want)
			}
		}
	}
}

func TestAPassOfHealingThatIsNotKnownHasNotEnded(t *testing.T) {
	const at = `"StartTime":"2026-02-12T20:18:48Z"`
	for name, test := range map[string]struct {
		status int
		answer string
		want   error
		ended  bool
		failed string
	}{
		"running":          {200, `{"Summary":"running",` + at + `}`, nil, false, ""},
		"not started":      {200, `{"Summary":"not started","StartTime":"0001-01-01T00:00:00Z"}`, nil, false, ""},
		"finished":         {200, `{"Summary":"finished",` + at + `}`, nil, true, ""},
		"stopped":          {200, `{"Summary":"stopped","Detail":"why",` + at + `}`, nil, true, "the server gave up: why"},
		"never heard of":   {200, `{"Summary":"finished","StartTime":"0001-01-01T00:00:00Z"}`, s3.ErrForgotten, false, ""},
		"another one runs": {400, `{"Code":"XMinioHealInvalidClientToken","Message":"why"}`, s3.ErrForgotten, false, ""},
		"no process":       {400, `{"Code":"XMinioHealNoSuchProcess","Message":"why"}`, s3.ErrForgotten, false, ""},
		"nothing":          {200, `{}`, s3.ErrForgotten, false, ""},
	} {
		client, asked := answering(t, test.status, test.answer)
		news, err := client.HealNews(t.Context(), "t:1")
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || news.Ended != test.ended || news.Failed != test.failed {
			t.Errorf("%s: %+v, %v", name, news, err)
		}
		if want := "POST /minio/admin/v3/heal/?clientToken=t%3A1 "; asked() != want {
			t.Errorf("%s: asked %q, want %q", name, asked(), want)
		}
	}
}

func TestItemsOfAPassOfHealingAreRead(t *testing.T) {
	client, _ := answering(t, 200, `{"Summary":"running","StartTime":"2026-02-12T20:18:48Z","Items":[
		{"resultId":7,"type":"object","bucket":"data","object":"a/b","versionId":"","detail":"why","diskCount":2,
		 "before":{"drives":[{"uuid":"","endpoint":"http://h/d","state":"missing"}]},"after":{"drives":[{"endpoint":"http://h/d","state":"ok"}]}},
		{"resultId":8,"type":"bucket","bucket":"data","object":"","versionId":"","after":{"drives":null}}]}`)
	news, err := client.HealNews(t.Context(), "t")
	if err != nil || len(news.Items) != 2 {
		t.Fatal(news, err)
	}
	want := `{Index:7 Kind:object Bucket:data Key:a/b Version:null Detail:why Of:2 Before:[{Drive:http://h/d State:missing}] After:[{Drive:http://h/d State:ok}]}`
	if got := fmt.Sprintf("%+v", news.Items[0]); got != want {
		t.Errorf("it is %s\nwant %s", got, want)
	}
	if got := news.Items[1]; got.Version != "" || got.Kind != s3.HealedBucket || len(got.After) != 0 {
		t.Errorf("the bucket is %+v", got)
	}
}
