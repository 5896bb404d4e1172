package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
)

func TestAPauseIsCalledByTheNameUnlessAnotherHasIt(t *testing.T) {
	status := api.Status{Pauses: map[string]fsm.PauseState{
		"": {By: "a"}, "minio": {By: "b"}, "tenant/minio": {By: "c"}, "lamp/hall": {By: "d"}, "worker-2": {By: "e"},
	}}
	got := map[string][2]string{}
	for _, pause := range PausesOf(status) {
		got[pause.By] = [2]string{pause.What, pause.Word}
	}
	want := map[string][2]string{
		"a": {"everything", ""}, "b": {"node minio", "node/minio"}, "c": {"tenant minio", "tenant/minio"},
		"d": {"lamp hall", "hall"}, "e": {"node worker-2", "worker-2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
