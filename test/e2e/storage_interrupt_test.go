package e2e

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// interrupter decides where EKCO is killed: before or after an effect, or both,
// at each place once. An effect is held there until the test has killed EKCO and
// calls release.
type interrupter struct {
	mu sync.Mutex
	// wanted is nil while nothing is to be interrupted.
	wanted  func(interruption) bool
	reached chan interruption
	seen    map[interruption]bool
	// gone is closed by release.
	gone chan struct{}
	late bool
}

// interruption is a place where EKCO was killed.
type interruption struct {
	effect string
	after  bool
}

func (i interruption) String() string {
	if i.after {
		return "after " + i.effect
	}
	return "before " + i.effect
}

// arm has the places that are wanted reported when EKCO comes to them. With
// late, an effect that was held before it happened does so when EKCO is gone.
func (i *interrupter) arm(wanted func(interruption) bool, late bool) <-chan interruption {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.gone != nil {
		close(i.gone) // frees what a failed test has held
	}
	const enough = 1000 // so that nobody waits for the test
	i.wanted, i.reached = wanted, make(chan interruption, enough)
	i.late, i.seen, i.gone = late, make(map[interruption]bool), make(chan struct{})
	return i.reached
}

// disarm lets everything pass from now on.
func (i *interrupter) disarm() {
	i.mu.Lock()
	i.wanted = nil
	i.mu.Unlock()
	i.release()
}

// release ends all holds. Effects that were held before they happened do not
// happen, unless they are late.
func (i *interrupter) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.gone != nil {
		close(i.gone)
		i.gone = make(chan struct{})
	}
}

// before holds an effect that is about to happen; when it reports true, EKCO is
// gone, and the effect must not happen.
func (i *interrupter) before(effect string) bool {
	held := i.hold(interruption{effect, false})
	i.mu.Lock()
	defer i.mu.Unlock()
	return held && !i.late
}

// after holds the answer about an effect; when it reports true, nobody waits for
// the answer any more.
func (i *interrupter) after(effect string) bool { return i.hold(interruption{effect, true}) }

func (i *interrupter) hold(at interruption) bool {
	i.mu.Lock()
	if i.wanted == nil || i.seen[at] || !i.wanted(at) {
		i.mu.Unlock()
		return false
	}
	i.seen[at] = true
	reached, gone := i.reached, i.gone
	i.mu.Unlock()
	reached <- at
	<-gone
	return true
}

// passed reports whether EKCO was killed there.
func (i *interrupter) passed(at interruption) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen[at]
}

// around holds a request for an effect, or its answer.
func (i *interrupter) around(effect string, w http.ResponseWriter, r *http.Request, next http.Handler) {
	if i.before(effect) {
		hangUp(w)
		return
	}
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	if i.after(effect) {
		hangUp(w)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(w)
}

// effectOf returns what a purge would change by the request, or nothing.
func effectOf(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodPost {
		return ""
	}
	for _, path := range []string{
		"/api/v1/nodes/", "/api/v1/namespaces/kube-system/configmaps/",
		"/apis/apps/v1/namespaces/rook-ceph/deployments/", "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/",
	} {
		if name, ok := strings.CutPrefix(r.URL.Path, path); ok {
			resource := strings.Split(strings.Trim(path, "/"), "/")
			return r.Method + " " + resource[len(resource)-1] + "/" + name
		}
	}
	return ""
}
