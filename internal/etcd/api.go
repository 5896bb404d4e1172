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
	// ErrNoMember: etcd has no such member. For a removal that is success.
	ErrNoMember = errors.New("no such etcd member")
	// ErrAmbiguous: more than one member could be the node's.
	ErrAmbiguous = errors.New("more than one etcd member could be meant")
	// ErrOtherAddress: the member with the node's name lives at an address that
	// is not the node's.
	ErrOtherAddress = errors.New("the etcd member of that name has another address")
	// ErrOtherMember: the member of that id is not the one that was meant.
	ErrOtherMember = errors.New("the etcd member of that id is not the node's")
	// ErrUnhealthy: etcd refuses the removal, because too few of the members
	// that would remain are started and connected.
	ErrUnhealthy = errors.New("etcd refuses the removal because it would endanger quorum")
	// ErrUnavailable: no endpoint gave an answer that the cluster agrees on.
	ErrUnavailable = errors.New("etcd is unavailable")
	// ErrNoQuorum: a member answered that it cannot agree on anything with the
	// others. It is an ErrUnavailable.
	ErrNoQuorum = error(noQuorumError{})
	// ErrReadOnly: a client that only reads was asked to change something. Nothing
	// was sent.
	ErrReadOnly = errors.New("this EKCO only reads, as in a dry run; nothing was changed")
	// ErrCertificates: a certificate file is missing or unusable.
	ErrCertificates = errors.New("cannot use the certificates for etcd")
)

type noQuorumError struct{}

func (noQuorumError) Error() string { return "etcd has no quorum" }

// Is makes errors.Is(ErrNoQuorum, ErrUnavailable) hold.
func (noQuorumError) Is(target error) bool { return target == ErrUnavailable }

// API is what EKCO asks of an etcd cluster. Implementations are safe for
// concurrent use, and every call honours its context.
type API interface {
	// Members lists the members as the cluster agrees on them: the answer is
	// linearizable, so without quorum there is none. It returns ErrNoQuorum when
	// an endpoint says that, ErrUnavailable when none answered, ErrCertificates
	// when none could be asked.
	Members(ctx context.Context) ([]Member, error)
	// Health asks every client URL of the given members, all at once and each
	// with a timeout of its own. There is one entry for each client URL, and one
	// with an error for a member that has none, in the order of the members. An
	// entry is an opinion of that moment from where EKCO runs.
	Health(ctx context.Context, members []Member) []EndpointHealth
	// RemoveMember removes a member by id. It returns ErrNoMember when there is
	// none of that id, ErrUnhealthy when etcd refuses. After ErrUnavailable the
	// member may be removed or not: ask again.
	RemoveMember(ctx context.Context, id ID) error
}

// Dial returns an API that asks Members and RemoveMember of those endpoints
// alone. It connects to nothing yet.
type Dial func(endpoints []string) (API, error)

// ID is the id of a member. Its text form, also in JSON, is hexadecimal, as
// etcdctl prints it: JSON numbers lose the last digits in common tools.
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
	// Name is empty until the member has started for the first time. kubeadm
	// names members after their nodes; etcd does not keep names unique.
	Name     string   `json:"name,omitempty"`
	PeerURLs []string `json:"peer_urls"`
	// ClientURLs are empty until the member has started for the first time.
	ClientURLs []string `json:"client_urls,omitempty"`
	// Learner members do not vote.
	Learner bool `json:"learner,omitempty"`
}

// String names the member for people.
func (m Member) String() string {
	name := m.Name
	if name == "" {
		name = "(never started)"
	}
	return fmt.Sprintf("%s (id %s, peer URLs %v)", name, m.ID, m.PeerURLs)
}

// EndpointHealth is how one client URL of a member answered.
type EndpointHealth struct {
	Member   ID     `json:"member"`
	Name     string `json:"name,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// Healthy is set when a voter answered a linearizable read, which takes a
	// quorum, and when a learner, which may not serve such reads, told its status.
	Healthy bool `json:"healthy"`
	// Leader, Term and Learner are as the endpoint sees itself.
	Leader  bool   `json:"leader,omitempty"`
	Term    uint64 `json:"term,omitempty"`
	Learner bool   `json:"learner,omitempty"`
	// Warnings are what a healthy endpoint complains of, for example NOSPACE.
	Warnings []string `json:"warnings,omitempty"`
	// Error says why the endpoint is not healthy.
	Error string        `json:"error,omitempty"`
	Took  time.Duration `json:"-"`
}
