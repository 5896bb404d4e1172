// Package loopback gives each cluster of a test process its own addresses in 127.0.0.0/8, so that clusters
// that run in parallel can all use default ports.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// size is how many networks there are, from 127.64.0.0/24 to 127.191.255.0/24.
const size = 128 << 8

// last is the number of the latest network. It starts at random: processes that share a network namespace
// hardly ever get the same.
var last atomic.Uint32

func init() { last.Store(rand.Uint32N(size)) }

// Network returns the first three parts of the addresses of a network that no other caller in this process
// gets, for example "127.64.0.".
func Network() string {
	number := last.Add(1) % size
	return fmt.Sprintf("127.%d.%d.", 64+number>>8, number&0xff)
}
