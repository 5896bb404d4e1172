package crashpoints

import (
	"slices"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAllPointsAreTriedInOrder(t *testing.T) {
	t.Setenv(CountVariable, "all")
	for n, want := range map[int][]int{1: {1}, 4: {1, 2, 3, 4}} {
		if got := Choose(t, n); !slices.Equal(got, want) {
			t.Errorf("of %d points it tries %v, want %v", n, got, want)
		}
	}
}

func TestASampleIsSpreadOverAllPoints(t *testing.T) {
	t.Setenv(CountVariable, "3")
	seen := make(map[int]bool)
	for seed := range 200 {
		t.Setenv(seedVariable, strconv.Itoa(seed))
		got := Choose(t, 8) // of 1 and 2, 3 to 5, 6 to 8
		if len(got) != 3 || got[0] > 2 || got[1] < 3 || got[1] > 5 || got[2] < 6 {
			t.Fatalf("it tries %v", got)
		}
		for _, point := range got {
			seen[point] = true
		}
	}
	if len(seen) != 8 || seen[0] || seen[9] {
		t.Errorf("with 200 seeds it tries %v", seen)
	}
	if got := Choose(t, 2); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("of two points it tries %v", got)
	}
}

func TestASeedRepeatsTheSample(t *testing.T) {
	t.Setenv(CountVariable, "5")
	t.Setenv(seedVariable, "7")
	first := Choose(t, 1000)
	if again := Choose(t, 1000); !slices.Equal(first, again) {
		t.Errorf("it tries %v, and then %v", first, again)
	}
	t.Setenv(seedVariable, "8")
	if other := Choose(t, 1000); slices.Equal(first, other) {
		t.Errorf("another seed chooses %v, too", other)
	}
}

func TestChooseOfReturnsPoints(t *testing.T) {
	t.Setenv(CountVariable, "2")
	if got := ChooseOf(t, []string{"a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("chosen are %q", got)
	}
}

func TestSampleIsLimitedUnlessAllAreAskedFor(t *testing.T) {
	points := make([]int, 1000)
	for asked, want := range map[string]int{"": min(2, defaultCount/2), "5": 5, "all": 1000} {
		t.Setenv(CountVariable, asked)
		if got := Sample(t, points, 2); len(got) != want {
			t.Errorf("with %q it tries %d points, want %d", asked, len(got), want)
		}
	}
}
