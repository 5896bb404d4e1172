package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// CertificateView is one row in the table of certificates.
type CertificateView struct {
	// Name is the name of certificates that EKCO renews together. State is their state.
	Name  string        `json:"name"`
	State journal.State `json:"state"`
	// Certificate is nil if EKCO could not read the certificate.
	Certificate *journal.Certificate `json:"certificate,omitempty"`
	// DaysLeft is the number of whole days until the certificate expires. It is negative after that.
	DaysLeft int `json:"days_left"`
	// RenewedAt is when EKCO last renewed the certificate. RenewedBy is the id of that action.
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	RenewedBy string    `json:"renewed_by,omitempty"`
	// Why is the problem of the certificate, or why EKCO does not renew it, or what the renewal waits for.
	Why string `json:"why,omitempty"`
}

// Certificates writes the certificates in a status. The certificate that expires first is on top.
func Certificates(w io.Writer, status api.Status, format string, color bool) error {
	shown, err := certificatesOf(status)
	switch {
	case err != nil:
		return err
	case format != "table":
		return Value(w, shown, format)
	case len(shown) == 0:
		_, err := fmt.Fprintln(w, "EKCO has seen no certificate yet")
		return err
	}
	s := style{color}
	rows := [][]cell{{{text: "NAME"}, {text: "CERTIFICATE"}, {text: "EXPIRES"}, {text: "LEFT"}, {text: "STATE"}, {text: "NOTES"}}}
	for _, c := range shown {
		rows = append(rows, c.row())
	}
	_, err = io.WriteString(w, strings.Join(alignCells(rows, s), "\n")+"\n")
	return err
}

func (c CertificateView) row() []cell {
	row := []cell{{text: Clean(c.Name)}, {text: "-"}, {text: "-"}, {text: "-"}, {text: Clean(string(c.State))}, {text: Clean(c.notes())}}
	if c.Certificate != nil {
		row[1].text = Clean(c.Certificate.At)
		row[2].text = c.Certificate.NotAfter.UTC().Format(time.RFC3339)
		row[3] = cell{text: fmt.Sprintf("%d d", c.DaysLeft), tone: c.tone()}
	}
	return row
}

func (c CertificateView) tone() tone {
	switch {
	case c.DaysLeft < 7:
		return bad
	case c.DaysLeft < 30:
		return doubtful
	}
	return normal
}

func (c CertificateView) notes() string {
	var notes []string
	if c.Why != "" {
		notes = append(notes, c.Why)
	}
	if !c.RenewedAt.IsZero() {
		notes = append(notes, fmt.Sprintf("renewed at %s by %s", words.Stamp(c.RenewedAt), c.RenewedBy))
	}
	return strings.Join(notes, "; ")
}

// certificatesOf returns the certificates in the order of the output.
func certificatesOf(status api.Status) ([]CertificateView, error) {
	shown := []CertificateView{}
	for _, thing := range status.Things {
		if thing.Machine != fsmcertificates.Machine || thing.Gone {
			continue
		}
		var facts fsmcertificates.Facts
		if len(thing.Facts) > 0 {
			if err := json.Unmarshal(thing.Facts, &facts); err != nil {
				return nil, fmt.Errorf("read the facts of certificate %s: %w", thing.Name, err)
			}
		}
		view := CertificateView{
			Name: thing.Name, State: thing.State, RenewedAt: facts.RenewedAt, RenewedBy: facts.RenewedBy,
			Why: cmp.Or(facts.Unreadable, facts.Unrenewed, facts.Unseen, renewalWait(status, thing.Name)),
		}
		for i, certificate := range facts.Certificates {
			view.Certificate, view.DaysLeft = &facts.Certificates[i], wholeDays(certificate.NotAfter.Sub(status.Now))
			shown = append(shown, view)
		}
		if len(facts.Certificates) == 0 {
			shown = append(shown, view)
		}
	}
	slices.SortStableFunc(shown, func(a, b CertificateView) int { return a.expiryTime().Compare(b.expiryTime()) })
	return shown, nil
}

// expiryTime returns the expiry time. For an unreadable certificate it is zero, so that the certificate is on top.
func (c CertificateView) expiryTime() time.Time {
	if c.Certificate == nil {
		return time.Time{}
	}
	return c.Certificate.NotAfter
}

// wholeDays returns whole days, rounded down even for negative values.
func wholeDays(left time.Duration) int {
	const day = 24 * time.Hour
	days := int(left / day)
	if left%day < 0 {
		days--
	}
	return days
}

// renewalWait returns what a renewal waits for, or "".
func renewalWait(status api.Status, name string) string {
	about := func(subject journal.Subject) bool {
		return subject.Kind == journal.KindCertificate && subject.Name == name
	}
	for _, action := range status.Actions {
		if !about(action.Subject) {
			continue
		}
		if action.Stalled != nil {
			return action.ID + " is stalled: " + action.Stalled.Reason
		}
		for _, hold := range action.Holds {
			return action.ID + " waits: " + hold.Reason
		}
		return action.ID + " is running"
	}
	for _, refusal := range status.Refusals {
		if about(refusal.Subject) {
			return fmt.Sprintf("%s: %s", refusal.Rule, refusal.Reason)
		}
	}
	for _, next := range status.Next {
		if about(next.Subject) && next.Why != "" {
			return next.Why
		}
	}
	return ""
}
