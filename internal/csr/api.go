package csr

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Signer is the signer of these requests.
const Signer = certificatesv1.KubeletServingSignerName

// API reads and approves kubelets' requests. All reads are live. Its errors are those of package kube: see
// [kube.Sentinel].
type API interface {
	// Requests is the source of all requests to the signer, see [Of].
	Requests() kube.Source
	// Read reads one request by its name. It returns kube.ErrNotFound if there is none.
	Read(ctx context.Context, name string) (Request, error)
	// Around returns, for each request, the facts about the cluster on which the decision depends, all read after
	// since. If EKCO may not read some of them, Around returns no error, but a result that says so.
	Around(ctx context.Context, since time.Time, asked ...journal.CSR) ([]journal.CSRAround, error)
	// Approve approves a request as it was read. It returns kube.ErrConflict when the
	// request has changed since.
	Approve(ctx context.Context, request Request, message string) error
}

// ReasonApproved is the reason in the condition of an approval by EKCO.
const ReasonApproved = "ekcoApprove"

// Decision is the decision on a request.
type Decision string

// The decisions.
const (
	// Pending: there is no decision yet.
	Pending Decision = ""
	// Approved, by any client.
	Approved Decision = "approved"
	// Denied, by any client.
	Denied Decision = "denied"
	// Failed: the signer could not sign it.
	Failed Decision = "failed"
)

// Request is a request as it was read.
type Request struct {
	Name, UID string
	CreatedAt time.Time
	Decision  Decision
	Asked     journal.CSR

	object *certificatesv1.CertificateSigningRequest
}

// Of returns the request in an object.
func Of(object *certificatesv1.CertificateSigningRequest) Request {
	request := Request{
		Name: object.Name, UID: string(object.UID), CreatedAt: object.CreationTimestamp.UTC(),
		Decision: decisionOf(object), object: object,
	}
	if request.Decision == Pending {
		request.Asked = Parse(object)
	} else {
		request.Asked = journal.CSR{Requester: printed(object.Spec.Username), Signer: printed(object.Spec.SignerName)}
	}
	return request
}

func decisionOf(object *certificatesv1.CertificateSigningRequest) Decision {
	decision := Pending
	if len(object.Status.Certificate) > 0 {
		decision = Approved
	}
	for _, condition := range object.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateDenied:
			return Denied
		case certificatesv1.CertificateApproved:
			decision = Approved
		case certificatesv1.CertificateFailed:
			if decision == Pending {
				decision = Failed
			}
		}
	}
	return decision
}

// WithoutObject returns the request without its object, to save memory.
func (r Request) WithoutObject() Request {
	r.object = nil
	return r
}

// Version returns the version of the object that was read; "" if the object is not kept.
func (r Request) Version() string {
	if r.object == nil {
		return ""
	}
	return r.object.ResourceVersion
}
