package kube

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const aLog = "GET /api/v1/namespaces/x/pods/p/log"

func TestALogIsReadAsItIsAndBounded(t *testing.T) {
	s := newServer(t, map[string]any{aLog: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "one\ntwo\n")
	}})
	c := s.client(Options{})
	for last, query := range map[int64]string{0: "limitBytes=65536", 3: "limitBytes=65536&tailLines=3"} {
		text, err := c.PodLog(t.Context(), "x", "p", last)
		if err != nil || text != "one\ntwo\n" || s.last().query != query {
			t.Errorf("the log is %q, %v, asked for %s", text, err, s.last().query)
		}
	}
}

func TestALogThatIsNotGivenSaysWhoDoesNotGiveIt(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		answer error
		want   error
		says   string
	}{
		"by a kubelet that is away": {apierrors.NewInternalError(errors.New("dial tcp 10.0.0.1:10250: i/o timeout")), nil, "the kubelet of its node"},
		"as it is forbidden":        {apierrors.NewForbidden(pods, "p", nil), ErrForbidden, "needs verb \"get\" on pods/log"},
		"as the pod is gone":        {apierrors.NewNotFound(pods, "p"), ErrNotFound, "get pods/log x/p"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, map[string]any{aLog: test.answer})
			heard := func(err error) { t.Errorf("an outage of the API server is reported: %v", err) }
			_, err := s.bound(Terms{Unanswered: heard}, Options{}).PodLog(t.Context(), "x", "p", 0)
			if got := Sentinel(err); !errors.Is(got, test.want) {
				t.Errorf("the error amounts to %v, want %v", got, test.want)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v does not say %q", err, test.says)
			}
		})
	}
}
