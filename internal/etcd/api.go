package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Sentinel errors. Every error of this package wraps at most one of them.
var (
	// ErrNoMember: etcd does not have the member. A removal treats this as success.
	ErrNoMember = errors.New("no such etcd member")
	// ErrAmbiguous: more than one member may belong to the node.
	ErrAmbiguous = errors.New("more than one etcd member matches")
	// ErrOtherAddress: the member with the node's name has an address that the node does not have.
	ErrOtherAddress = errors.New("the etcd member of that name has another address")
	// ErrOtherMember: the member with that id is not the expected one.
	ErrOtherMember = errors.New("the etcd member of that id is not the node's")
	// ErrUnhealthy: etcd refuses the removal, because too few of the remaining members are started and
	// connected.
	ErrUnhealthy = errors.New("etcd refuses the removal because it would endanger quorum")
	// ErrUnavailable: no endpoint returned an answer on which the cluster agrees.
	ErrUnavailable = errors.New("etcd is unavailable")
	// ErrNoQuorum: a member answered that it has no quorum. This error is also an ErrUnavailable.
	ErrNoQuorum = error(noQuorumError{})
	// ErrReadOnly: a read-only client was asked for a change. It sent nothing.
	ErrReadOnly = errors.New("this EKCO is read-only, as in a dry run; nothing was changed")
	// ErrCertificates: a certificate file is missing or unusable.
	ErrCertificates = errors.New("cannot use the certificates for etcd")
)

type noQuorumError struct{}

func (noQuorumError) Error() string { return "etcd has no quorum" }

// Is makes errors.Is(ErrNoQuorum, ErrUnavailable) hold.
func (noQuorumError) Is(target error) bool { return target == ErrUnavailable }

// API has the calls that EKCO needs to read and change an etcd cluster. Implementations are safe for concurrent use, and
// every call ends when its context is done.
type API interface {
	// Members lists the members. The answer is linearizable, so it needs a quorum. Members returns ErrNoQuorum if an
	// endpoint reports that there is no quorum, ErrUnavailable if no endpoint answers, and ErrCertificates if a certificate
	// file is unusable.
	Members(ctx context.Context) ([]Member, error)
	// Health asks every client URL of the members, in parallel and each with its own timeout. The result has one entry for
	// each client URL, in the order of the members. A member without client URLs has one entry with an error. An entry
	// describes only the moment of the request, as seen from EKCO's host.
	Health(ctx context.Context, members []Member) []EndpointHealth
	// RemoveMember removes a member by id. It returns ErrNoMember if no member has the id, and ErrUnhealthy if etcd refuses
	// the removal. After ErrUnavailable the member may have been removed; call Members to check.
	RemoveMember(ctx context.Context, id ID) error
}

// Dial returns an API whose Members and RemoveMember use only these endpoints. It does not connect yet.
type Dial func(endpoints []string) (API, error)

// ID is the id of a member. As text and in JSON it is hexadecimal, like in etcdctl. JSON has a string, because many tools
// round large JSON numbers.
type ID uint64

func (id ID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalText writes the id as etcdctl does.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("read etcd member id %q: %w", text, err)
	}
	*id = ID(parsed)
	return nil
}

// Member is a member of the cluster.
type Member struct {
	ID ID `json:"id"`
	// Name is empty until the member's first start. kubeadm names members after their nodes; etcd does not keep
	// names unique.
	Name     string   `json:"name,omitempty"`
	PeerURLs []string `json:"peer_urls"`
	// ClientURLs are empty until the member's first start.
	ClientURLs []string `json:"client_urls,omitempty"`
	// Learner members do not vote.
	Learner bool `json:"learner,omitempty"`
}

// String returns the name of the member for messages.
func (m Member) String() string {
	name := m.Name
	if name == "" {
		name = "(never started)"
	}
	return fmt.Sprintf("%s (id %s, peer URLs %v)", name, m.ID, m.PeerURLs)
}

// EndpointHealth is the answer of one client URL of a member.
type EndpointHealth struct {
	Member   ID     `json:"member"`
	Name     string `json:"name,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// For a voter, Healthy is set if it answered a linearizable read, which needs a quorum. For a learner, which cannot
	// serve such reads, Healthy is set if it returned its status.
	Healthy bool `json:"healthy"`
	// Leader, Term and Learner are the status that the endpoint reports about itself.
	Leader  bool   `json:"leader,omitempty"`
	Term    uint64 `json:"term,omitempty"`
	Learner bool   `json:"learner,omitempty"`
	// Warnings are the errors that a healthy endpoint reports, for example NOSPACE.
	Warnings []string `json:"warnings,omitempty"`
	// Error is the reason why the endpoint is not healthy.
	Error string        `json:"error,omitempty"`
	Took  time.Duration `json:"-"`
}
