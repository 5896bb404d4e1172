package s3

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAPassThatBeganBeforeItWasAskedForProvesNothing, also where nobody has taken anything of
// it: it waits with what it saw before a drive was replaced. Nor does the token of somebody
// else's come to be told.
func TestAPassThatBeganBeforeItWasAskedForProvesNothing(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	for name, test := range map[string]struct {
		began time.Time
		busy  bool
		want  error
	}{
		"its own":         {began: now.Add(time.Second / 2)},
		"an earlier one":  {began: now.Add(-time.Second), want: ErrHealing},
		"somebody else's": {busy: true, want: ErrHealing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", now.Format(http.TimeFormat))
				started := test.began.Format(time.RFC3339Nano)
				switch {
				case r.URL.Path == "/minio/health/live":
				case test.busy:
					w.WriteHeader(http.StatusBadRequest)
					_, _ = fmt.Fprint(w, `{"Code":"XMinioHealAlreadyRunning","Message":"token is t0ken"}`)
				case r.URL.Query().Get("clientToken") == "":
					_, _ = fmt.Fprintf(w, `{"clientToken":"t0ken","startTime":%q}`, started)
				default:
					_, _ = fmt.Fprintf(w, `{"Summary":"finished","StartTime":%q}`, started)
				}
			}))
			defer server.Close()
			client, err := NewClient(Endpoint{Address: strings.TrimPrefix(server.URL, "http://"), Credentials: Credentials{"kurl", "secret"}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.Heal(t.Context(), func(int64) {}); !errors.Is(err, test.want) || err != nil && strings.Contains(err.Error(), "t0ken") {
				t.Errorf("it ends with %v, want %v", err, test.want)
			}
		})
	}
}
