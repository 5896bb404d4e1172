// Package loopback gives each cluster of a test process its own addresses in 127.0.0.0/8, so that clusters
// that run in parallel can all use default ports.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// size is the number of networks, from 127.64.0.0/24 to 127.191.255.0/24.
const size = 128 << 8

// last is the number of the latest network. It starts at random, so that processes in the same network namespace rarely
// use the same network.
var last atomic.Uint32

func init() { last.Store(rand.Uint32N(size)) }

// Network returns the first three parts of a network's addresses, for example "127.64.0.". Each caller in this process
// gets another network.
func Network() string {
	number := last.Add(1) % size
	return fmt.Sprintf("127.%d.%d.", 64+number>>8, number&0xff)
}
