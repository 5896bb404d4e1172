package purge

import (
	"context"
	"errors"
	"testing"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// mute is a Ceph that does not answer one question.
type mute struct {
	ceph.API
	about string
}

func (m mute) err(about string) error {
	if m.about == about {
		return errors.New("no answer")
	}
	return nil
}

func (m mute) Tree(context.Context) (ceph.Tree, error)    { return ceph.Tree{}, m.err("tree") }
func (m mute) Pools(context.Context) ([]ceph.Pool, error) { return nil, m.err("pools") }
func (m mute) PGs(context.Context) ([]ceph.PG, error)     { return nil, m.err("pgs") }

func TestACephThatDoesNotSayIsNotTakenForStuck(t *testing.T) {
	record := journal.ActionRecord{Plan: journal.Plan{Facts: []byte(`{"storage":{}}`)}}
	for _, about := range []string{"tree", "pools", "pgs"} {
		if stuck, why := isStuck(t.Context(), mute{about: about}, record); stuck || why == "" {
			t.Errorf("without its %s it is stuck: %v, because %q", about, stuck, why)
		}
	}
}
