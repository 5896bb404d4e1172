package secrets

import (
	"maps"
	"sync"
)

// attempt is a renewal of several Secrets that has begun: their content before, and the new content. It is only in
// memory, and only until it is done, since it contains keys.
type attempt struct{ before, made []map[string]string }

// attempts has the renewals that have begun, by name.
type attempts struct {
	mu sync.Mutex
	of map[string]*attempt
}

// content returns what a renewal changes of a Secret.
func (h held) content() map[string]string {
	content := map[string]string{}
	for _, key := range []string{h.of.certificate, h.of.key, h.of.ca} {
		if value, is := h.secret.data[key].(string); is {
			content[key] = value
		}
	}
	return content
}

func contents(all []held) (of []map[string]string) {
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

// resume sets the content of an earlier attempt, and reports whether it did. It does so only if that attempt wrote
// the first Secret, and nobody has changed the others since. With another CA at each attempt, clients that read only
// the first Secret would have to trust one CA after the other.
func (begun *attempts) resume(name string, all []held) bool {
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
