package observers

import "time"

// Allowance bounds how often the journal is told of what changes as often as somebody
// likes: by key Burst times at once, and once more after each Every. The zero Allowance
// bounds nothing. It is to be used by one goroutine at a time.
type Allowance struct {
	Burst int
	Every time.Duration
	// even is, by key, when all that was told would have been told if it had been told
	// evenly.
	even map[string]time.Time
}

// Take uses one of the key's, if there is one.
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

// Next returns from when on the key has one; zero if it has always had.
func (a *Allowance) Next(key string) time.Time {
	even, ok := a.even[key]
	if !ok {
		return time.Time{}
	}
	return even.Add(-time.Duration(a.Burst-1) * a.Every)
}

// Forget drops the keys that have all of theirs again.
func (a *Allowance) Forget(now time.Time) {
	for key, even := range a.even {
		if !now.Before(even) {
			delete(a.even, key)
		}
	}
}
