package etcd_test

import (
	"encoding/json"
	"testing"

	"github.com/replicatedhq/ekco/internal/etcd"
)

func TestAMemberIsWrittenWithTheIDThatEtcdctlPrints(t *testing.T) {
	want := etcd.Member{ID: 0x8e9e05c52164694d, Name: "a", PeerURLs: []string{urlA}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := `{"id":"8e9e05c52164694d","name":"a","peer_urls":["` + urlA + `"]}`; string(text) != got {
		t.Errorf("wrote %s, want %s", text, got)
	}
	var got etcd.Member
	if err := json.Unmarshal(text, &got); err != nil || got.ID != want.ID || got.Name != want.Name {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"id":"x"}`), &got); err == nil {
		t.Error("an id that is none was read")
	}
}
