package actionstest

import (
	"iter"
	"math/rand/v2"
)

// Points yields the crash points 1 to n of a run. Under the race detector, which makes each
// many times as slow, it yields every [stride]th, from one by chance: the goroutines and
// what they share are the same at each, and without the detector all are tried.
func Points(n int) iter.Seq[int] { return from(1+rand.IntN(min(stride, max(n, 1))), n, stride) }

// from yields every nth number from first to last.
func from(first, last, nth int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := first; at <= last; at += nth {
			if !yield(at) {
				return
			}
		}
	}
}
