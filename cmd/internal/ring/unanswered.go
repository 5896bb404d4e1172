package ring

import "sync/atomic"

// Unanswered reports requests that the Kubernetes API did not answer to a ring's observers. It exists before the
// ring, since clients need it. The zero value is ready for use, and ignores reports until observers run.
type Unanswered struct{ observers atomic.Pointer[Observers] }

// Report reports an unanswered request. It does not block.
func (u *Unanswered) Report(err error) {
	if observers := u.observers.Load(); observers != nil {
		(*observers).Suspect(err)
	}
}
