package observers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/observers"
)

// polledObjects asks for all lamps, as something that has no watch.
func polledObjects(b *bench) observers.Source {
	return observers.Poll(observers.Polled[lamp]{
		Name: "polled lamps", OfAPI: true, Interval: 30 * time.Second, Timeout: 5 * time.Second, Noun: lamps(nil),
		Ask: func(ctx context.Context) (map[string]lamp, error) {
			all := map[string]lamp{}
			for _, name := range lampNames {
				got, err := b.Get(ctx, "configmaps", name)
				if err != nil {
					return nil, err
				}
				o := got.(*corev1.ConfigMap)
				all["polled-"+name] = lamp{string(o.UID), o.Data["burns"] == "yes"}
			}
			return all, nil
		},
	})
}

var lampNames = []string{"desk", "hall", "roof"}

// switchLamps changes some lamps, and replaces some under their names.
func switchLamps(b *bench, rng *rand.Rand) {
	for _, name := range lampNames {
		uid := fmt.Sprint("uid-", rng.IntN(2))
		b.Put(lampObject(name, uid, []string{"yes", "no"}[rng.IntN(2)]))
	}
}

// told replays what was written: the last word on each lamp. It fails when a fact
// is written twice, or of a lamp that nobody was told of.
func told(b *bench, lines []string) map[string]string {
	b.Helper()
	last := map[string]string{}
	for _, line := range lines {
		words := strings.Fields(line)
		if !strings.HasPrefix(words[0], "node.") || words[1] == "a" {
			continue
		}
		name, state := words[1], strings.Join(words[2:], " ")
		switch {
		case words[0] == "node.gone" && !strings.HasPrefix(last[name], words[2]):
			b.Errorf("%s, which was %q", line, last[name])
		case words[0] == "node.gone":
			delete(last, name)
		case last[name] == state:
			b.Errorf("%s, for the second time", line)
		default:
			last[name] = state
		}
	}
	return last
}

// burn returns what is to be told of the lamps as they are.
func burn(b *bench) map[string]string {
	now := map[string]string{}
	for _, name := range lampNames {
		got, err := b.Get(b.Context(), "configmaps", name)
		if err != nil {
			b.Fatal(err)
		}
		o := got.(*corev1.ConfigMap)
		state := fmt.Sprintf("%s %s", o.UID, map[string]string{"yes": "burns", "no": "dark"}[o.Data["burns"]])
		now[name], now["polled-"+name] = state, state
	}
	return now
}

func TestWhateverFailsForAWhileAThirdNounIsToldAsItIsSoonAfterwards(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(faults))
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		few := []string{kinds[rng.IntN(len(kinds))], kinds[rng.IntN(len(kinds))]}
		streams := rng.IntN(2) == 0
		t.Run(fmt.Sprintf("%d %s streams %t", seed, strings.Join(few, "+"), streams), func(t *testing.T) {
			watching(t, func(b *bench, _ *observers.Options) {
				b.Streams = streams
				b.Sources = func() []observers.Source {
					return append(b.Everything(), watchedLamps(b, nil), polledObjects(b))
				}
				b.Put(node("a", "1"))
				switchLamps(b, rng)
			}, func(b *bench) {
				for range 1 + rng.IntN(4) {
					if rng.IntN(3) == 0 {
						b.Paper.BreakWith(faults["unknown"].Err)
					}
					switchLamps(b, rng)
					disturb(b, rng, few)
					switchLamps(b, rng)
					b.Paper.BreakWith(nil)
				}
				b.ReadyAfter(soon)
				// A watch that says nothing is closed by the server after ten minutes at most,
				// and one that was forbidden is asked for again after five.
				b.Pass(11 * time.Minute)
				if diff := cmp.Diff(burn(b), told(b, b.Paper.Take())); diff != "" {
					b.Errorf("the last word on each lamp (-want +got):\n%s\n%s", diff, b.Said)
				}
				if absent := b.Absent(); len(absent) > 0 {
					b.Errorf("Absent is %q after everything works again", absent)
				}
			})
		})
	}
}
