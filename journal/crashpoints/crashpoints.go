// Package crashpoints chooses the points at which a crash test stops the process. A test tries all its points, but
// under the race detector only a sample, because each point then takes many times as long. The sample is enough there,
// because every point runs the same goroutines on the same data.
//
// A seed decides which points are in the sample, and the test logs the seed. These environment variables change the
// sample:
//
//	EKCO_CRASH_SEED=7       the sample of seed 7, instead of a random seed
//	EKCO_CRASH_POINTS=20    20 points in each test
//	EKCO_CRASH_POINTS=all   all points, also under the race detector
package crashpoints

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

const seedVariable = "EKCO_CRASH_SEED"

// CountVariable is the environment variable with the number of points that each test tries, or "all".
const CountVariable = "EKCO_CRASH_POINTS"

// randomSeed returns the same seed for all tests of a binary. To repeat them all, set EKCO_CRASH_SEED to it.
var randomSeed = sync.OnceValue(rand.Uint64)

// Choose returns which of the points 1 to n the test must try, in order. It fails the test if n is less than 1.
func Choose(t testing.TB, n int) []int {
	t.Helper()
	return choose(t, n, defaultCount)
}

func choose(t testing.TB, n, limit int) []int {
	t.Helper()
	if n < 1 {
		t.Fatal("there are no points at which to stop the process")
	}
	count := sampleSize(t, n, limit)
	if count == n {
		return pick(nil, n, n)
	}
	seed := seed(t)
	t.Logf("tries %d of %d points, chosen by %s=%d", count, n, seedVariable, seed)
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name())) // so that a test that runs alone tries the same points
	return pick(rand.New(rand.NewPCG(seed, name.Sum64())), n, count)
}

// ChooseOf returns which of the points the test must try, in order.
func ChooseOf[T any](t testing.TB, points []T) []T {
	t.Helper()
	return chooseOf(t, points, defaultCount)
}

// Sample is ChooseOf for a matrix with too many points to try all: it returns at most limit without the race detector, and
// one with it.
func Sample[T any](t testing.TB, points []T, limit int) []T {
	t.Helper()
	return chooseOf(t, points, min(limit, defaultCount/2))
}

func chooseOf[T any](t testing.TB, points []T, limit int) []T {
	t.Helper()
	var chosen []T
	for _, i := range choose(t, len(points), limit) {
		chosen = append(chosen, points[i-1])
	}
	return chosen
}

// pick divides the numbers 1 to n into count ranges, and picks a random number from each range. random may be nil if
// count is n.
func pick(random *rand.Rand, n, count int) []int {
	picked := make([]int, count)
	for i := range count {
		first, end := i*n/count, (i+1)*n/count
		picked[i] = first + 1
		if end-first > 1 {
			picked[i] += random.IntN(end - first)
		}
	}
	return picked
}

// sampleSize returns how many of n points to try.
func sampleSize(t testing.TB, n, limit int) int {
	t.Helper()
	switch text := os.Getenv(CountVariable); text {
	case "":
		return min(n, limit)
	case "all":
		return n
	default:
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			t.Fatalf("%s is %q: want a number above zero, or \"all\"", CountVariable, text)
		}
		return min(n, count)
	}
}

func seed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv(seedVariable)
	if text == "" {
		return randomSeed()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q: want a number", seedVariable, text)
	}
	return seed
}
