package podexec

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec/podexectest"
)

func TestAnExecThatTheAPIServerDoesNotAnswerIsReportedOverEitherProtocol(t *testing.T) {
	coded := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { podexectest.Refuse(w, code, "told so") }
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	run := func([]string) (string, string, int) { return "out", "", 0 }
	for name, test := range map[string]struct {
		exec http.HandlerFunc
		want bool
	}{
		"WebSocket answers":                       {podexectest.OverWebSocket(t, run), false},
		"SPDY answers after a refusal":            {podexectest.ByMethod(podexectest.Forbidden, podexectest.OverSPDY(t, run)), false},
		"both are forbidden":                      {podexectest.Forbidden, false},
		"there is no such pod":                    {coded(http.StatusNotFound), false},
		"WebSocket is hung up on":                 {hangUp, true},
		"both are answered by a server in faults": {coded(http.StatusServiceUnavailable), true},
		"SPDY meets a server in faults":           {podexectest.ByMethod(podexectest.Forbidden, coded(http.StatusServiceUnavailable)), true},
		"SPDY is hung up on":                      {podexectest.ByMethod(podexectest.Forbidden, hangUp), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t)
			s.exec = test.exec
			var mu sync.Mutex
			var reported []error
			client := s.bound(kube.Terms{Unanswered: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				reported = append(reported, err)
			}})
			_, _, _, err := client.Exec(t.Context(), toolsPod, []string{"ceph", "status"})
			mu.Lock()
			defer mu.Unlock()
			if says := errors.Is(err, kube.ErrUnavailable); says != test.want {
				t.Errorf("the error is %v", err)
			}
			if told := len(reported) > 0; told != test.want {
				t.Errorf("reported was %v, after the error %v", reported, err)
			}
			for _, err := range reported {
				if !errors.Is(err, kube.ErrUnavailable) {
					t.Errorf("reported was %v", err)
				}
			}
		})
	}
}
