package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAWatchThatWasStoppedHasNothingMoreToSay(t *testing.T) {
	f := newFacts(nil)
	f.differ.Change(func(all *compared) { f.watch(all, map[string]string{"a": "1"}) })
	for _, closed := range []bool{true, false} {
		s := &sink{facts: &f, node: "a"}
		if closed {
			s.close()
		}
		ends := metav1.Now()
		s.Seen(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "p", DeletionTimestamp: &ends},
			Spec:       corev1.PodSpec{NodeName: "a"},
		})
		if due := f.differ.Due(time.Now()); (len(due.Drafts) == 0) != closed {
			t.Errorf("closed %t: due is %+v", closed, due.Drafts)
		}
	}
}
