package observers

import "time"

// Allowance limits how often the journal gets facts that change often: by key, Burst times immediately, and once more
// after each Every. The zero Allowance has no limit. Only one goroutine may use it at a time.
type Allowance struct {
	Burst int
	Every time.Duration
	// even is, by key, the time at which the recorded changes would have been recorded at a rate of one per Every.
	even map[string]time.Time
}

// Take uses one of the key's changes, if one is left.
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

// Next returns when the key's next change is allowed; zero if it has used none.
func (a *Allowance) Next(key string) time.Time {
	even, ok := a.even[key]
	if !ok {
		return time.Time{}
	}
	return even.Add(-time.Duration(a.Burst-1) * a.Every)
}

// Forget drops the keys that have used none.
func (a *Allowance) Forget(now time.Time) {
	for key, even := range a.even {
		if !now.Before(even) {
			delete(a.even, key)
		}
	}
}
