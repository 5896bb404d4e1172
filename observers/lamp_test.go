package observers_test

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// A lamp is a third noun, of which the engine knows nothing: a ConfigMap, or what
// somebody says who is asked. The catalogue has no events of lamps; they borrow
// those of nodes.
type lamp struct {
	uid   string
	burns bool
}

// lamps says how lamps are told of.
func lamps(known map[string]lamp) observers.Noun[lamp] {
	return observers.Noun[lamp]{
		Observed: func(name string, l lamp) journal.Draft {
			state := journal.NodeRole("dark")
			if l.burns {
				state = "burns"
			}
			return journal.Draft{
				Type: journal.TypeNodeObserved, Actor: "observer/lamp", Subject: journal.Subject{Kind: "Lamp", Name: name, UID: l.uid},
				Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: state}},
			}
		},
		Gone: func(name string, l lamp, reason string) journal.Draft {
			return journal.Draft{
				Type: journal.TypeNodeGone, Actor: "observer/lamp", Subject: journal.Subject{Kind: "Lamp", Name: name, UID: l.uid},
				Payload: journal.NodeGone{Reason: reason},
			}
		},
		Equal: func(a, b lamp) bool { return a == b },
		UID:   func(l lamp) string { return l.uid },
		Known: maps.All(known),
	}
}

// watchedLamps are ConfigMaps that say whether they burn.
func watchedLamps(b *bench, known map[string]lamp) observers.Source {
	return observers.Watch(observers.Watched[lamp]{
		Name: "lamps", From: b.ConfigMaps(), Object: &corev1.ConfigMap{}, Noun: lamps(known),
		Read: func(obj runtime.Object) (string, lamp, bool) {
			o := obj.(*corev1.ConfigMap)
			burns, isLamp := o.Data["burns"]
			return o.Name, lamp{string(o.UID), burns == "yes"}, isLamp
		},
	})
}

// lampObject returns a lamp that burns "yes", "no", or is none at all ("").
func lampObject(name, uid, burns string) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	if burns != "" {
		o.Data = map[string]string{"burns": burns}
	}
	return o
}

// keeper is who is asked for lamps.
type keeper struct {
	mu    sync.Mutex
	lamps map[string]lamp
	err   error
	// hangs: there is no answer before the question's time is over.
	hangs bool
	// takes is how long an answer takes.
	takes time.Duration
	// asked is when the keeper was asked.
	asked []time.Time
}

// ask answers as of when it was asked.
func (k *keeper) ask(ctx context.Context) (map[string]lamp, error) {
	k.mu.Lock()
	k.asked = append(k.asked, time.Now())
	answer, err, takes := maps.Clone(k.lamps), k.err, k.takes
	if k.hangs {
		takes = time.Hour
	}
	k.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(takes):
		return answer, err
	}
}

// change has the keeper answer differently from now on.
func (k *keeper) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// times returns how often the keeper was asked since the last time.
func (k *keeper) times() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	times := len(k.asked)
	k.asked = nil
	return times
}
