package etcd

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func TestEtcdWithoutQuorumIsCalledThat(t *testing.T) {
	for _, said := range []error{
		rpctypes.ErrNoLeader, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
	} {
		err := joined([]error{endpointError("https://a", said), endpointError("https://b", errors.New("connection refused"))})
		if !errors.Is(err, ErrNoQuorum) || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "https://a: etcd has no quorum: ") {
			t.Errorf("%v is called %v", said, err)
		}
	}
	if err := endpointError("https://a", errors.New("connection refused")); errors.Is(err, ErrNoQuorum) {
		t.Errorf("a member that does not answer says nothing of the quorum: %v", err)
	}
}
