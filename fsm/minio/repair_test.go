package minio

import (
	"encoding/json"
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
		"Service minio selects ha-minio": fixed, "it should select minio now": disabled("uid-single"),
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
		!strings.Contains(w.S.Refusals[0].Reason, "another program keeps changing the selector of Service minio back to nowhere") {
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

// TestOnceItsPlaceIsTakenADisabledServiceDoesNotLeadToTheSingleMinIO: clients have written to the
// other one since.
func TestOnceItsPlaceIsTakenADisabledServiceDoesNotLeadToTheSingleMinIO(t *testing.T) {
	const single, ha, nowhere, other = journal.MinioServiceSingle, journal.MinioServiceHA, journal.MinioServiceDisabled, journal.MinioServiceOther
	switched := func(leads ...journal.MinioService) func(w *world) {
		return func(w *world) { w.switches(journal.MinioCutOver{Switches: true, Version: "7"}, leads...) }
	}
	see := func(w *world, deployment string, leads ...journal.MinioService) {
		for _, service := range leads {
			facts := complete(1)
			facts.Service, facts.Deployment = service, deployment
			w.observe(facts)
		}
	}
	for name, test := range map[string]struct {
		before     func(w *world)
		deployment string
		leads      []journal.MinioService
		want       journal.MinioService
	}{
		"after EKCO's switch":                 {switched(ha), "uid-single", []journal.MinioService{nowhere}, ha},
		"while EKCO's switch was open":        {switched(ha, nowhere), "uid-single", []journal.MinioService{nowhere}, ha},
		"again and again":                     {switched(ha), "uid-single", []journal.MinioService{nowhere, ha, nowhere}, ha},
		"by way of the single one":            {switched(ha), "uid-single", []journal.MinioService{single, nowhere}, single},
		"by way of something else":            {switched(ha), "uid-single", []journal.MinioService{other, nowhere}, single},
		"a Deployment that was made since":    {switched(ha), "uid-another", []journal.MinioService{nowhere}, single},
		"somebody else's, and back by hand":   {func(*world) {}, "uid-single", []journal.MinioService{nowhere, ha, nowhere}, single},
		"EKCO's, and somebody had it go back": {switched(ha, single), "uid-single", []journal.MinioService{nowhere}, single},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.observe(complete(1))
			test.before(w)
			see(w, test.deployment, test.leads...)
			w.Pass(fsm.RetryAfter + time.Minute)
			rec := w.wants(repair, true)
			asked, err := journal.InputOf[journal.MinioRepair](rec.Request)
			if err != nil || asked.To != test.want || (asked.To == ha) != (asked.Taken == "uid-single") {
				t.Errorf("%v: asked for %+v, want %s", err, asked, test.want)
			}
			see(w, test.deployment, nowhere)
			w.Write(fsm.Decide(w.S, w.P, w.Now).Events...)
			if rec.Cancelling != nil {
				t.Errorf("it ends: %+v", rec.Cancelling)
			}
		})
	}
}

// TestOnceItsPlaceIsTakenAndItIsGoneTheServiceDoesNotLeadToTheSingleMinIO: nobody would answer there.
func TestOnceItsPlaceIsTakenAndItIsGoneTheServiceDoesNotLeadToTheSingleMinIO(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(complete(1))
	w.switches(journal.MinioCutOver{Switches: true, Version: "7"}, journal.MinioServiceHA)
	facts := complete(1)
	facts.Deployment, facts.Service = "", journal.MinioServiceDisabled
	w.observe(facts)
	rec := w.wants(repair, true)
	if asked, err := journal.InputOf[journal.MinioRepair](rec.Request); err != nil || asked != (journal.MinioRepair{To: journal.MinioServiceHA}) {
		t.Errorf("%v: asked for %+v", err, asked)
	}
}

// TestADryRunOfASwitchTakesNobodysPlace: the single one has all data, whatever a dry run said of
// its steps.
func TestADryRunOfASwitchTakesNobodysPlace(t *testing.T) {
	w := newWorld(t, 3)
	w.P.DryRun = true
	w.observe(complete(1))
	rec := w.plays("", journal.MinioCutOver{}, journal.StepPrepareMinio, journal.StepCutOverMinio)
	w.observe(disabled("uid-single"))
	w.end(rec, journal.OutcomeDryRun)
	w.P.DryRun = false
	w.Pass(fsm.RetryAfter + time.Minute)
	rec = w.wants(repair, true)
	if asked, err := journal.InputOf[journal.MinioRepair](rec.Request); err != nil || asked != (journal.MinioRepair{To: journal.MinioServiceSingle}) {
		t.Errorf("%v: asked for %+v", err, asked)
	}
}

// TestAMigrationThatDeletesTheSingleMinIOIsHelped: it waits until the Service leads to the other
// one again, and nobody else would have it do so.
func TestAMigrationThatDeletesTheSingleMinIOIsHelped(t *testing.T) {
	for deleting, want := range map[bool]bool{true: true, false: false} {
		w := newWorld(t, 3)
		w.observe(complete(1))
		rec := w.wants(migrate, true)
		const step = journal.StepDeleteMinioDeployment
		w.act(rec, &journal.ActionPlanned{Plan: journal.Plan{Facts: json.RawMessage(`{"deployment":"uid-single"}`), Steps: []journal.PlannedStep{{ID: step, Irreversible: deleting}}}},
			&journal.StepStarted{Step: step, Attempt: 1})
		w.observe(disabled("uid-single"))
		help := w.wants(repair, want)
		if help == nil {
			continue
		}
		if asked, err := journal.InputOf[journal.MinioRepair](help.Request); err != nil || asked != (journal.MinioRepair{To: journal.MinioServiceHA, Taken: "uid-single"}) {
			t.Errorf("%v: asked for %+v", err, asked)
		}
	}
}

// TestInSafeModeNothingButTheServiceIsRepaired: a migration that is under way does not go on.
func TestInSafeModeNothingButTheServiceIsRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		steps []string
		to    journal.MinioService
	}{
		"no migration":      {nil, journal.MinioServiceSingle},
		"before the switch": {[]string{journal.StepPrepareMinio}, journal.MinioServiceSingle},
		"after the switch":  {[]string{journal.StepPrepareMinio, journal.StepCutOverMinio}, journal.MinioServiceHA},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.observe(complete(1))
			if test.steps != nil {
				w.plays("store-1", journal.MinioCutOver{}, test.steps...)
			}
			facts := complete(2)
			facts.Service, facts.Desired = journal.MinioServiceDisabled, 8
			w.Write(journal.Draft{Type: journal.TypeJournalSalvaged, Subject: journal.JournalSubject, Actor: "journal", Payload: journal.JournalSalvaged{DamagedFile: "f"}})
			w.observe(facts)
			w.wants(scaling, false)
			rec := w.wants(repair, true)
			if asked, err := journal.InputOf[journal.MinioRepair](rec.Request); err != nil || asked.To != test.to {
				t.Errorf("%v: asked for %+v, want %s", err, asked, test.to)
			}
		})
	}
}
