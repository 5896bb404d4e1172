package certificates

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// RuleRenewable refuses a person's request to renew certificates that EKCO cannot or must not renew.
const RuleRenewable = "Renewable"

// Request returns a person's request to renew certificates that expire within a time.
func Request(name string, within time.Duration, actor, reason string) (fsm.Request, error) {
	input, err := json.Marshal(journal.CertificateInput{TTL: journal.Duration(within)})
	return fsm.Request{Kind: journal.ActionRenewCertificate, Name: name, Actor: actor, Reason: reason, Input: input}, err
}

// Asked implements [fsm.Asked]. A person may give the remaining validity below which certificates are renewed.
func (machine) Asked(t *fsm.Thing, w *fsm.World, request fsm.Request, asked *journal.ActionRequested) error {
	var given journal.CertificateInput
	if len(request.Input) > 0 {
		if err := json.Unmarshal(request.Input, &given); err != nil {
			return &fsm.RefusedError{Rule: fsm.RuleInput, Reason: fmt.Sprintf("read the request to renew %s: %v", t.Name, err)}
		}
	}
	if given.TTL < 0 {
		return &fsm.RefusedError{Rule: fsm.RuleInput, Reason: fmt.Sprintf("ttl is %s; it must be more than 0", time.Duration(given.TTL))}
	}
	facts := of(t).Facts
	for _, why := range []string{facts.Unreadable, facts.Unrenewed} {
		if why != "" {
			return &fsm.RefusedError{Rule: RuleRenewable, Reason: why}
		}
	}
	if end := facts.Ends(); given.TTL > 0 && !end.IsZero() && w.Now.Before(end.Add(-time.Duration(given.TTL))) {
		return fsm.NothingToDoError(fmt.Sprintf("nothing renewed: the first certificate of %s expires at %s, more than %s from now; to renew it anyway, give a longer --ttl",
			t.Name, fsm.Stamp(end), time.Duration(given.TTL)))
	}
	asked.Input = journal.CertificateInput{Ends: facts.Ends(), TTL: given.TTL}
	return nil
}
