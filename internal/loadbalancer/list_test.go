package loadbalancer

import (
	"errors"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

var listRef = kube.Ref{Version: "v1", Resource: "configmaps", Namespace: "kurl", Name: "update-internallb"}

const nodes = "p1 true 10.0.0.1,w1 false 10.0.0.2"

func TestTheListIsMadeAndWrittenAndWhatElseIsInItStays(t *testing.T) {
	objects := kubesim.NewObjects()
	list := NewList(objects, "kurl")
	if facts, err := list.Read(t.Context()); err != nil || facts != (journal.LoadBalancerListFacts{}) {
		t.Errorf("%+v, %v", facts, err)
	}
	made, err := list.Write(t.Context(), journal.LoadBalancerListInput{List: nodes})
	if err != nil || made.UID == "" || made.Sum != journal.SumOfLoadBalancers(nodes) {
		t.Fatalf("%+v, %v", made, err)
	}
	objects.Edit(listRef, func(object map[string]any) {
		object["data"].(map[string]any)["other"] = "stays"
		object["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	})
	written, err := list.Write(t.Context(), journal.LoadBalancerListInput{UID: made.UID, List: "p1 true 10.0.0.1"})
	if err != nil || written.UID != made.UID || written.Sum != journal.SumOfLoadBalancers("p1 true 10.0.0.1") {
		t.Errorf("%+v, %v", written, err)
	}
	object := objects.Object(listRef)
	if data := object["data"].(map[string]any); data["update-internallb"] != "p1 true 10.0.0.1" || data["other"] != "stays" || object["metadata"].(map[string]any)["labels"] == nil {
		t.Errorf("it is %v", object)
	}
	if facts, err := list.Read(t.Context()); err != nil || facts != written {
		t.Errorf("%+v, %v", facts, err)
	}
}

func TestAnotherListIsLeftAlone(t *testing.T) {
	objects := kubesim.NewObjects()
	list := NewList(objects, "kurl")
	if _, err := list.Write(t.Context(), journal.LoadBalancerListInput{UID: "gone", List: nodes}); !errors.Is(err, ErrOtherList) || objects.Object(listRef) != nil {
		t.Errorf("of one that is gone: %v", err)
	}
	objects.Put(listRef, `{"data":null}`)
	for _, uid := range []string{"", "another"} {
		if _, err := list.Write(t.Context(), journal.LoadBalancerListInput{UID: uid, List: nodes}); !errors.Is(err, ErrOtherList) || objects.Object(listRef)["data"] != nil {
			t.Errorf("of %q: %v", uid, err)
		}
	}
}

func TestWhatIsLackingForTheListIsNamed(t *testing.T) {
	for verb, uid := range map[string]string{"get": "u", "create": "", "update": "is"} {
		objects := kubesim.NewObjects()
		list := NewList(objects, "kurl")
		if uid == "is" {
			uid = objects.Put(listRef, `{}`)
		}
		objects.Forbid(verb + " configmaps")
		_, err := list.Write(t.Context(), journal.LoadBalancerListInput{UID: uid, List: nodes})
		if verb == "get" {
			_, readErr := list.Read(t.Context())
			if !errors.Is(readErr, kube.ErrForbidden) {
				t.Errorf("%v", readErr)
			}
		}
		if !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), "lacks the permission to "+verb+" configmaps") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
