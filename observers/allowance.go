package observers

import "time"

// Allowance limits how often changes of a key are recorded in the journal. It allows Burst changes of a key at once,
// and then one more in each period of Every. The zero Allowance has no limit. Only one goroutine may use it at a time.
type Allowance struct {
	Burst int
	Every time.Duration
	// even has, for each key, the time from which the key has all its changes available again.
	even map[string]time.Time
}

// Take counts one change of the key. It returns false if the key has no change left.
func (a *Allowance) Take(key string, now time.Time) bool {
	if a.Every == 0 {
		return true
	}
	if now.Before(a.Next(key)) {
		return false
	}
	even := a.even[key]
	if even.Before(now) {
		even = now
	}
	if a.even == nil {
		a.even = make(map[string]time.Time)
	}
	a.even[key] = even.Add(a.Every)
	return true
}

// Next returns when the next change of the key is allowed, or the zero time if the key has not used any.
func (a *Allowance) Next(key string) time.Time {
	even, ok := a.even[key]
	if !ok {
		return time.Time{}
	}
	return even.Add(-time.Duration(a.Burst-1) * a.Every)
}

// Forget drops the keys that have all their changes available again.
func (a *Allowance) Forget(now time.Time) {
	for key, even := range a.even {
		if !now.Before(even) {
			delete(a.even, key)
		}
	}
}
