package csr

import (
	"time"

	"github.com/replicatedhq/ekco/observers"
)

// factsAllowance returns the limit, for each requester, on records of changed facts of requests: a kubelet can change the
// addresses of its Node at any rate.
func factsAllowance() observers.Allowance {
	return observers.Allowance{Burst: 5, Every: 5 * time.Minute}
}
