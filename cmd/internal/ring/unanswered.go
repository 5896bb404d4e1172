package ring

import "sync/atomic"

// Unanswered tells a ring's observers about requests that the Kubernetes API did not answer. Clients need it before the
// ring exists. The zero value is ready for use, and ignores reports until observers run.
type Unanswered struct{ observers atomic.Pointer[Observers] }

// Report reports an unanswered request. It does not block.
func (u *Unanswered) Report(err error) {
	if observers := u.observers.Load(); observers != nil {
		(*observers).ReportFailedCall(err)
	}
}
