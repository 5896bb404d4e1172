package minio

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const repair = journal.ActionRepairMinio

// disabled is MinIO whose Service an EKCO has disabled.
func disabled(deployment string) journal.MinioFacts {
	facts := installed(1, 6)
	facts.Deployment, facts.Service = deployment, journal.MinioServiceDisabled
	return facts
}

func TestAServiceThatEKCODisabledLeadsSomewhereAgain(t *testing.T) {
	for _, test := range []struct {
		service    journal.MinioService
		deployment string
		want       journal.MinioService
	}{
		{journal.MinioServiceDisabled, "", journal.MinioServiceHA},
		{journal.MinioServiceDisabled, "uid-single", journal.MinioServiceSingle},
		{journal.MinioServiceInstaller, "", ""},
		{journal.MinioServiceInstaller, "uid-single", ""},
		{journal.MinioServiceOther, "", ""},
		{"", "", ""},
		{journal.MinioServiceSingle, "", ""},
		{journal.MinioServiceHA, "uid-single", ""}, // the highly available one has the newest data
		{journal.MinioServiceHA, "", ""},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			w := newWorld(t, 1) // however few nodes there are
			facts := disabled(test.deployment)
			facts.Service = test.service
			w.observe(facts)
			rec := w.wants(repair, test.want != "")
			if rec == nil {
				return
			}
			if asked, err := journal.InputOf[journal.MinioRepair](rec.Request); err != nil || asked.To != test.want {
				t.Errorf("%v: asked for %+v", err, asked)
			}
		})
	}
}

func TestARepairThatHasLostItsReasonEnds(t *testing.T) {
	fixed := disabled("")
	fixed.Service = journal.MinioServiceHA
	for reason, facts := range map[string]journal.MinioFacts{
		"Service minio leads to ha-minio": fixed, "it shall lead to minio now": disabled("uid-single"),
	} {
		w := newWorld(t, 1)
		w.observe(disabled(""))
		rec := w.wants(repair, true)
		w.observe(facts)
		w.Write(fsm.Decide(w.S, w.P, w.Now).Events...)
		if rec.Cancelling == nil || rec.Cancelling.Reason != reason {
			t.Errorf("the action is %+v, want %q", rec, reason)
		}
	}
}

func TestARepairIsNotRepeatedBeforeItIsSeenAndIsNoFight(t *testing.T) {
	w := newWorld(t, 1)
	w.observe(disabled(""))
	for generation := range int64(2) {
		rec := w.wants(repair, true)
		w.made(rec, nil)
		w.end(rec, journal.OutcomeDone)
		w.wants(repair, false)
		facts := disabled("")
		facts.Generation = generation + 2
		w.observe(facts) // somebody disabled it again
		w.Pass(time.Minute)
	}
	w.wants(repair, false)
	if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested ||
		!strings.Contains(w.S.Refusals[0].Reason, "somebody else keeps changing where Service minio leads back to nowhere") {
		t.Errorf("refused is %+v", w.S.Refusals)
	}
}

// TestARepairDoesNotWaitForReplicasThatDoNotGetReady: with the Service, clients wait.
func TestARepairDoesNotWaitForReplicasThatDoNotGetReady(t *testing.T) {
	w := newWorld(t, 3)
	facts := disabled("uid-single")
	facts.Replicas = 0
	w.observe(facts)
	w.wants(scaling, true)
	w.wants(repair, true)
}
