package secrets

import (
	"maps"
	"sync"
)

// attempt is a renewal of several Secrets in progress: their old and their new content. It contains keys, so it is only
// in memory, and only until the renewal is done.
type attempt struct{ before, made []map[string]string }

// attempts has the renewals in progress, by name.
type attempts struct {
	mu sync.Mutex
	of map[string]*attempt
}

// content returns the part of a Secret that a renewal changes.
func (h stored) content() map[string]string {
	content := map[string]string{}
	for _, key := range []string{h.of.certificate, h.of.key, h.of.ca} {
		if value, is := h.secret.data[key].(string); is {
			content[key] = value
		}
	}
	return content
}

func contents(all []stored) (of []map[string]string) {
	for _, h := range all {
		of = append(of, h.content())
	}
	return of
}

func (begun *attempts) keep(name string, a *attempt) {
	begun.mu.Lock()
	defer begun.mu.Unlock()
	begun.of[name] = a
}

// resume sets the new content of an earlier attempt, and reports whether it has done so. It does so if that attempt has
// written the first Secret and the other Secrets are unchanged. Without resume, each attempt would create another CA,
// and clients that read only the first Secret would have to trust one CA after the other.
func (begun *attempts) resume(name string, all []stored) bool {
	begun.mu.Lock()
	defer begun.mu.Unlock()
	a := begun.of[name]
	if a == nil || !maps.Equal(all[0].content(), a.made[0]) {
		return false
	}
	for i, h := range all[1:] {
		if live := h.content(); !maps.Equal(live, a.before[i+1]) && !maps.Equal(live, a.made[i+1]) {
			return false
		}
	}
	for i, h := range all {
		for key, value := range a.made[i] {
			h.secret.data[key] = value
		}
	}
	return true
}
