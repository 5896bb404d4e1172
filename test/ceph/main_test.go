package ceph_test

import (
	"flag"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// atOnce is how many tests run at once, unless -parallel says otherwise. They mostly wait for
// daemons, so it may be more than there are cores.
const atOnce = 3

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
