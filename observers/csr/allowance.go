package csr

import (
	"time"

	"github.com/replicatedhq/ekco/observers"
)

// retells is how often, by requester, changed facts of requests are recorded: a kubelet can change its Node's
// addresses at any rate.
func retells() observers.Allowance { return observers.Allowance{Burst: 5, Every: 5 * time.Minute} }
