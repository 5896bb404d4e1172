package purge

import (
	"errors"
	"fmt"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
)

func TestTheKeyOfAnErrorIsThatOfItsCauseWhateverItSays(t *testing.T) {
	for want, err := range map[string]error{
		"":                     errors.New("forbidden"),
		"api away":             fmt.Errorf("list nodes: %w", kube.ErrUnavailable),
		"forbidden: get nodes": fmt.Errorf("look: %w", kube.NamePermission(kube.ErrForbidden, "get", "nodes")),
		"certificates":         fmt.Errorf("%w: %w", etcd.ErrUnavailable, etcd.ErrCertificates),
	} {
		if got := keyOf(err); got != want {
			t.Errorf("%v is about %q, want %q", err, got, want)
		}
	}
}

func TestAnErrorOfAPartSaysWhatItSaidAndHasTheKeyOfBoth(t *testing.T) {
	cause := fmt.Errorf("list nodes: %w", kube.ErrUnavailable)
	err := fmt.Errorf("plan: %w", withKey("node", cause))
	if !errors.Is(err, kube.ErrUnavailable) || err.Error() != "plan: "+cause.Error() || actions.KeyOf(err) != "node: api away" {
		t.Errorf("%v has key %q", err, actions.KeyOf(err))
	}
	if withKey("node", nil) != nil {
		t.Error("no error became one")
	}
}
