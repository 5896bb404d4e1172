package ring

import "sync/atomic"

// Unanswered hands on to a ring's observers which requests the Kubernetes API did
// not answer. It is there before the ring, for the clients that a ring is made of.
// The zero value is ready for use, and tells nobody until something observes.
type Unanswered struct{ observers atomic.Pointer[Observers] }

// Report tells of a request that was not answered. It does not block.
func (u *Unanswered) Report(err error) {
	if observers := u.observers.Load(); observers != nil {
		(*observers).Suspect(err)
	}
}
