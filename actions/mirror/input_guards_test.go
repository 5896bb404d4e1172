package mirror_test

import (
	"log/slog"
	"testing"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
)

func TestWhatIsOfNoFormatWasNeverAMirror(t *testing.T) {
	cluster := kubesim.New()
	cluster.SetMirror([]byte(`{"format":0,"journal_id":"j9","actions":[]}`))
	if got, err := mirror.New(cluster, "reader", slog.New(slog.DiscardHandler)).Load(t.Context()); err == nil {
		t.Errorf("it is read as %+v", got)
	}
}
