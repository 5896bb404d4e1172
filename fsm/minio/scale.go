package minio

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// wantScale calls want with the scaling to the number of replicas in the annotation.
func wantScale(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	m := of(t)
	_, ready := w.Count(nodeMachine)
	if ready < journal.MinioReadyNodes || m.Desired == 0 || m.replicas() == m.Desired || len(openActions(t, w, journal.ActionScaleMinio)) > 0 {
		return
	}
	due, may := t.RetryChange(journal.ActionScaleMinio, m.Made[journal.ActionScaleMinio], w.Policy)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionScaleMinio, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: "replicas", Field: "the replicas of StatefulSet " + t.Name, From: fmt.Sprint(m.replicas()), To: fmt.Sprint(m.Desired),
	}})
}

func requestScale(t *fsm.Thing, w *fsm.World) journal.ActionRequested {
	m := of(t)
	_, ready := w.Count(nodeMachine)
	return journal.ActionRequested{
		Reason: fmt.Sprintf("%s are ready, so it should have %s, and has %d", words.Count(ready, "node"), words.Count(m.Desired, "replica"), m.replicas()),
		Input:  journal.MinioScale{Replicas: m.Desired},
	}
}

func obsoleteScale(t *fsm.Thing, rec *journal.ActionRecord) string {
	asked, err := journal.InputOf[journal.MinioScale](rec.Request)
	switch m := of(t); {
	case err != nil:
		return ""
	case m.replicas() == asked.Replicas:
		return "it has " + words.Count(asked.Replicas, "replica")
	case m.Desired != asked.Replicas:
		return fmt.Sprintf("its annotation asks for %d now", m.Desired)
	}
	return ""
}
