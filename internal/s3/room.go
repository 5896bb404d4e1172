package s3

import "fmt"

// Drive is a directory in which a server keeps its part of a store.
type Drive struct {
	// Host is the server's, as the store calls it; empty for the only one.
	Host string
	// Works is set for one that is there and is not being filled anew. Of others nothing
	// else is known for certain.
	Works bool
	// Set is the number of the pool and that of the set in it, over whose drives each object
	// is spread.
	Set [2]int
	// Total and Free are the bytes of its file system, which other drives may share.
	Total, Free uint64
	// Device is the file system's on its machine, empty where the server does not tell it,
	// as old ones do not.
	Device string
}

// reserved is how many percent of a file system stay free: where less than 15 are,
// kubelet's default is to evict what runs on the node, MinIO first of all.
const reserved = 20

// usable is how much of its file system can be filled.
func (d Drive) usable() uint64 {
	reserve := d.Total / 100 * reserved
	if d.Free < reserve {
		return 0
	}
	return d.Free - reserve
}

// fileSystem tells file systems apart. What cannot be told apart is taken for one: on
// one machine by its size, as that of two volumes may be the same.
func (d Drive) fileSystem(machine string) string {
	if d.Device != "" {
		return machine + " " + d.Device
	}
	return fmt.Sprint(machine, " of ", d.Total)
}

// perVersion is about how many bytes a version takes on each drive besides its content: a
// directory and a file.
const perVersion = 8 << 10

// Takes is how much of [Server.Room] it takes to store versions with so many bytes of
// content in all.
func (s Server) Takes(versions, bytes int64) uint64 {
	drives := 1
	for _, set := range s.sets() {
		drives = max(drives, set.drives-s.Parity)
	}
	return uint64(max(bytes, 0)) + uint64(max(versions, 0))*perVersion*uint64(drives)
}

// Room is how many bytes of content fit if all drives fill alike, and a fifth of each file
// system stays free. Drives share what a file system has; machine names the one that a host
// is on, as several may be on one.
func (s Server) Room(machine func(host string) string) uint64 {
	sharing := make(map[string]uint64)
	for _, d := range s.Drives {
		sharing[d.fileSystem(machine(d.Host))]++
	}
	room := uint64(0)
	for _, set := range s.sets() {
		least, known := uint64(0), false
		for _, d := range set.work {
			// In each set, the fullest drive decides.
			if share := d.usable() / sharing[d.fileSystem(machine(d.Host))]; !known || share < least {
				least, known = share, true
			}
		}
		room += least * uint64(max(set.drives-s.Parity, 0))
	}
	return room
}

// set is drives over which objects are spread.
type set struct {
	drives int
	work   []Drive
}

func (s Server) sets() map[[2]int]set {
	sets := make(map[[2]int]set)
	for _, d := range s.Drives {
		one := sets[d.Set]
		one.drives++
		if d.Works {
			one.work = append(one.work, d)
		}
		sets[d.Set] = one
	}
	return sets
}
