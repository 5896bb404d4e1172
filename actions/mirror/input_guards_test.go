package mirror_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestARequestWithoutAPlanIsMirroredWholeOrNotAtAll(t *testing.T) {
	pods := make([]journal.PodRef, 4000)
	for i := range pods {
		pods[i] = journal.PodRef{Namespace: "default", Name: strings.Repeat("w", 400) + fmt.Sprint(i), UID: fmt.Sprint("uid-", i)}
	}
	unplanned := open("unplanned", 1)
	unplanned.Kind, unplanned.Request.Kind = journal.ActionClearNode, journal.ActionClearNode
	unplanned.Request.Input = journal.ClearInput{Pods: pods}
	_, cluster := mirrored(t, unplanned, open("other", 2))
	if got := content(t, cluster); ids(got.Actions) != "other@2" || fmt.Sprint(got.LeftOut) != "[unplanned]" {
		t.Errorf("the mirror holds %q, left out %q", ids(got.Actions), got.LeftOut)
	}
}

func TestWhatIsOfNoFormatWasNeverAMirror(t *testing.T) {
	cluster := kubesim.New()
	cluster.SetMirror([]byte(`{"format":0,"journal_id":"j9","actions":[]}`))
	if got, err := mirror.New(cluster, "reader", slog.New(slog.DiscardHandler)).Load(t.Context()); err == nil {
		t.Errorf("it is read as %+v", got)
	}
}
