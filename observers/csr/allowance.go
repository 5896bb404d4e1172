package csr

import (
	"time"

	"github.com/replicatedhq/ekco/observers"
)

// retells is how often, by requester, the journal is told anew that facts of requests have
// changed: a kubelet can change its Node's addresses as often as it likes.
func retells() observers.Allowance { return observers.Allowance{Burst: 5, Every: 5 * time.Minute} }
